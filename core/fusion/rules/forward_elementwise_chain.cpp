// A run of elementwise ops in one pass over memory.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_elementwise_chain() {
  const auto isElementwise = [](const Node& node) { return node.operation->isElementwise(); };
  const auto isPlainElementwise = [](const Node& node) {
    return node.operation->isElementwise() && !node.operation->elementwise.isGated;
  };
  return {
      .name = "ForwardElementwiseChain",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "A run of elementwise ops keeps its values in registers: one pass over memory, one rounding at the end.",
      .chain = {{.role = "first", .accepts = isElementwise, .acceptsText = "an elementwise op"},
                {.role = "rest",
                 .repeat = Repeat::OneOrMore,
                 .accepts = isPlainElementwise,
                 .acceptsText = "an elementwise op that is not gated"}},
      .becomes = "elementwise",
  };
}

}  // namespace fuseline::rules
