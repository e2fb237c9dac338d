// Reads the attributes of CrossEntropy.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cross_entropy_form.h"

#include <fmt/format.h>

namespace fuseline {

CrossEntropyForm crossEntropyForm(const Attributes& attributes) {
  const std::string& reduction = attributes.text("reduction");
  return {.ignoreIndex = attributes.integer("ignore_index"),
          .reduction = reduction == "mean"  ? LossReduction::Mean
                       : reduction == "sum" ? LossReduction::Sum
                                            : LossReduction::None,
          .smoothing = attributes.real("label_smoothing"),
          .lseSquareScale = attributes.real("lse_square_scale")};
}

Result<std::int64_t> countTargets(const CrossEntropyForm& form, std::span<const std::int64_t> targets,
                                  std::int64_t classes) {
  std::int64_t counted = 0;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    if (form.isIgnored(targets[row])) continue;
    if (targets[row] < 0 || targets[row] >= classes)
      return Error{fmt::format("CrossEntropy: target[{}] is {}, but there are {} classes, 0 to {}; ignore_index is {}.",
                               row, targets[row], classes, classes - 1, form.ignoreIndex)};
    ++counted;
  }
  return counted;
}

}  // namespace fuseline
