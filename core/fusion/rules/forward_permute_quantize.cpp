// MoEPermute quantizes the rows of each expert for the grouped linear op that reads them.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"
#include "core/ops/grouped_form.h"
#include "core/ops/moe_form.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

/// The permutation knows where each expert's rows begin; other sizes may cut a row's group elsewhere.
Condition groupsAreThoseOfTheExperts() {
  return {.sentence = "The linear op has one group of rows for each expert, with split_sizes of the permutation.",
          .holds =
              [](const Match& match) {
                const Node& permute = *match.role("permute");
                const Node& linear = *match.role("linear");
                if (!isGrouped(linear.attributes))
                  return Verdict::no(fmt::format("{} ({}) quantizes the rows of all experts together.", linear.id,
                                                 linear.operation->name));
                const ValueId sizes = linear.inputs[GroupedForm::kSplitSizes];
                if (sizes == permute.outputs[PermuteForm::kSplitSizes]) return Verdict::yes();
                return Verdict::no(fmt::format("{} divides the rows by {}, not by split_sizes of {}.", linear.id,
                                               match.graph.value(sizes).name, permute.id));
              },
          .repairs = {}};
}

}  // namespace

/// Backward has nothing to fuse: the gradient of a permutation is not read by a GEMM.
FusionRule forward_permute_quantize() {
  return {
      .name = "ForwardPermuteQuantize",
      .pass = FusionPass::ForwardQuantization,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "Tokens are quantized while they are copied to their experts, so the copies are neither written nor read in "
          "high precision. Results are bitwise identical.",
      .chain = {{.role = "permute", .operations = {"MoEPermute"}}, quantizing("linear", TensorType::Input)},
      .conditions = {scalesNeedOnlyRows("linear", TensorType::Input), groupsAreThoseOfTheExperts()},
      .becomes = "quantize",
  };
}

}  // namespace fuseline::rules
