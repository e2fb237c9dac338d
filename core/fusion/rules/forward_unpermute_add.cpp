// The rows of a token's experts and the tensors added behind them, in one sum.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

/// The kernel adds rows of one element type.
Condition addsOneDType() {
  return {.sentence = "All added tensors have the dtype of the experts' rows.",
          .holds =
              [](const Match& match) {
                const DType rows = match.graph.spec(match.nodes.front(), OperandKind::Output, 0).dtype;
                for (const NodeId id : match.nodes)
                  for (const TensorSpec& input : match.graph.inputSpecs(id))
                    if (input.dtype != rows && match.graph.node(id).operation->name == "AddExtraInput")
                      return Verdict::no(
                          fmt::format("{} adds a tensor of {} to rows of {}. A single pass needs one "
                                      "dtype.",
                                      match.graph.node(id).id, dtypeName(input.dtype), dtypeName(rows)));
                return Verdict::yes();
              },
          .repairs = {}};
}

}  // namespace

/// Backward has nothing to fuse: the gradient of a sum is that of each addend.
FusionRule forward_unpermute_add() {
  return {
      .name = "ForwardUnpermuteAdd",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "The pass that adds the rows of a token's experts also adds the shared expert and the residual, in float32 "
          "and rounded once, so the sum of the experts is neither written nor read again.",
      .chain = {{.role = "unpermute", .operations = {"MoEUnpermute"}},
                {.role = "add", .operations = {"AddExtraInput"}},
                {.role = "second", .operations = {"AddExtraInput"}, .repeat = Repeat::Optional}},
      .conditions = {addsOneDType()},
      .becomes = "unpermute_add",
  };
}

}  // namespace fuseline::rules
