// Ops that do nothing, but may be between others.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/connections.h"
#include "core/plan/suggestions/sources.h"
#include "core/plan/suggestions/written_op.h"

#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// y equals x for every x.
bool isIdle(const Node& node) {
  const std::string& name = node.operation->name;
  if (name == "Identity") return true;
  if (name == "ConstantScale") return node.attributes.real("scale") == 1.0;
  return name == "Dropout" && node.attributes.real("p") == 0.0;
}

}  // namespace

std::vector<Proposal> suggestion_sources::idle_ops(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  std::set<std::string> seen;  // an op of a block is in each of its instances
  for (const Node& node : context.analysis.graph().nodes()) {
    const std::optional<WrittenOp> op = isIdle(node) ? writtenOp(context.document, node) : std::nullopt;
    if (!op || !seen.insert(op->text()).second) continue;
    proposals.push_back({.source = "idle_ops",
                         .node = node.owner,
                         .repair = {fmt::format("Remove {}, which has no effect", op->text()),
                                    op->inPlace(removeOpWithWires(context.document, *op->section, op->id, true))},
                         .caution = op->cautionWith("")});
  }
  return proposals;
}

}  // namespace fuseline
