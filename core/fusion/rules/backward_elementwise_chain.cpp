// The backwards of a run of elementwise ops in one pass over memory.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_elementwise_chain() {
  const auto isElementwise = [](const Node& node) { return node.operation->isElementwise(); };
  const auto isPlainElementwise = [](const Node& node) {
    return node.operation->isElementwise() && !node.operation->elementwise.isGated;
  };
  return {
      .name = "BackwardElementwiseChain",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "The gradients of a run of elementwise ops pass through registers; bias gradients are summed in the same "
          "pass.",
      .chain = {{.role = "first", .accepts = isElementwise, .acceptsText = "an elementwise op"},
                {.role = "rest",
                 .repeat = Repeat::OneOrMore,
                 .accepts = isPlainElementwise,
                 .acceptsText = "an elementwise op that is not gated"}},
      .becomes = "elementwise",
  };
}

}  // namespace fuseline::rules
