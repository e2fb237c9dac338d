// Chains that several rules share.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/chains.h"

namespace fuseline::rules {

std::vector<ChainStep> elementwiseChain() {
  const auto isElementwise = [](const Node& node) { return node.operation->isElementwise(); };
  const auto isPlain = [](const Node& node) {
    return node.operation->isElementwise() && !node.operation->elementwise.isGated;
  };
  return {{.role = "first", .accepts = isElementwise, .acceptsText = "an elementwise op"},
          {.role = "rest",
           .repeat = Repeat::OneOrMore,
           .accepts = isPlain,
           .acceptsText = "an elementwise op that is not gated"}};
}

}  // namespace fuseline::rules
