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

std::string badTargetText(const CrossEntropyForm& form, std::int64_t row, std::int64_t target, std::int64_t classes) {
  return fmt::format("CrossEntropy: target[{}] is {}, but there are {} classes, 0 to {}; ignore_index is {}.", row,
                     target, classes, classes - 1, form.ignoreIndex);
}

}  // namespace fuseline
