// Counts the scores that attention computes, and the results that it alone keeps.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/attention_memory.h"

#include "core/ops/attention_form.h"
#include "core/support/text.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Size of the scores that the mask keeps, in the dtype of the queries.
std::int64_t scoreBytes(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const AttentionForm form = attentionForm(node.attributes);
  const std::int64_t flops = node.operation->flops(node.attributes, graph.inputSpecs(id)).forward;
  const std::int64_t pairs = flops / (2 * (form.qkChannels + form.vChannels));
  return saturatedProduct(pairs, sizeBytes(graph.inputSpecs(id).front().dtype));
}

/// Results of the op that are kept for itself only.
std::int64_t ownBytes(const MemoryProfile& profile, const Plan& plan, const Graph& graph, NodeId id) {
  std::int64_t bytes = 0;
  for (const KeptTensor& kept : profile.kept) {
    const std::string& name = plan.tensors[static_cast<std::size_t>(kept.tensor)].name;
    if (name.starts_with(graph.node(id).id + ":") && kept.readers == std::vector<NodeId>{id}) bytes += kept.bytes;
  }
  return bytes;
}

}  // namespace

std::string attentionMemory(const MemoryProfile& profile, const Plan& plan, const Graph& graph) {
  std::string text;
  if (graph.pass() != ExecutionMode::Training) return text;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.operation->name != "DotProductAttention" || !node.takesPartInBackward()) continue;
    text += fmt::format("{}: its scores, {}, are never kept; recomputing its forward in backward would free {}\n",
                        node.id, formatBytes(scoreBytes(graph, id)), formatBytes(ownBytes(profile, plan, graph, id)));
  }
  return text;
}

}  // namespace fuseline
