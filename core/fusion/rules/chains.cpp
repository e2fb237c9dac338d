// Chains that several rules share.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/chains.h"

namespace fuseline::rules {

namespace {

bool isElementwise(const Node& node) { return node.operation->isElementwise(); }
bool isPlain(const Node& node) { return isElementwise(node) && !node.operation->elementwise.isGated; }
bool hasOneOutput(const Node& node) { return node.operation->outputs.size() == 1; }

}  // namespace

std::vector<ChainStep> elementwiseChain() {
  return {
      {.role = "first", .accepts = isElementwise, .acceptsText = "an elementwise op"},
      {.role = "rest", .repeat = Repeat::OneOrMore, .accepts = isPlain, .acceptsText = "an ungated elementwise op"}};
}

// A branch would tie the GEMM to the place of the last op, and all consumers of the branch would have to wait for it.
std::vector<ChainStep> linearEpilogueChain() {
  return {{.role = "linear", .operations = {"BasicLinear"}},
          {.role = "bias", .operations = {"Bias"}, .repeat = Repeat::Optional},
          {.role = "first",
           .accepts = [](const Node& node) { return isElementwise(node) && hasOneOutput(node); },
           .acceptsText = "an elementwise op"},
          {.role = "rest",
           .repeat = Repeat::ZeroOrMore,
           .accepts = [](const Node& node) { return isPlain(node) && hasOneOutput(node); },
           .acceptsText = "an ungated elementwise op"}};
}

}  // namespace fuseline::rules
