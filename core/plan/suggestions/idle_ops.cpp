// Ops that do nothing, but may stand between others.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/sources.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

/// y is x, whatever x is.
bool isIdle(const Node& node) {
  const std::string& name = node.operation->name;
  if (name == "Identity") return true;
  if (name == "ConstantScale") return node.attributes.real("scale") == 1.0;
  return name == "Dropout" && node.attributes.real("p") == 0.0;
}

}  // namespace

std::vector<Proposal> suggestion_sources::idle_ops(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  for (const Node& node : context.analysis.graph().nodes()) {
    if (!isIdle(node) || !context.document.findOp(node.id)) continue;
    proposals.push_back({.source = "idle_ops",
                         .node = node.id,
                         .repair = {fmt::format("Remove {}, which does nothing", node.id),
                                    removeOpWithWires(context.document, node.id, true)}});
  }
  return proposals;
}

}  // namespace fuseline
