// Counts the scores that attention computes, and the results that it alone keeps.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/attention_memory.h"

#include "core/ops/attention_form.h"
#include "core/support/text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Size of the matrices of scores that an attention would store, masked ones included, in the dtype of the queries.
std::int64_t scoreBytes(const Graph& graph, NodeId id) {
  const AttentionForm form = attentionForm(graph.node(id).attributes);
  const std::vector<TensorSpec> inputs = graph.inputSpecs(id);
  std::vector<Shape> shapes;
  for (const TensorSpec& input : inputs) shapes.push_back(input.shape);
  const Result<AttentionLayouts> layouts = attentionLayouts(form, shapes);
  if (!layouts) return 0;  // the graph has inferred these shapes before
  // Packed sequences count as equally long.
  const bool isPacked = form.format == QkvFormat::Thd;
  const std::int64_t sequences =
      isPacked ? std::max<std::int64_t>(1, numSequences(inputs[static_cast<std::size_t>(form.cuSeqlensQSlot)])) : 1;
  const std::int64_t rows = saturatedProduct(layouts->q.batch * form.heads, layouts->q.tokens);
  return saturatedProduct(saturatedProduct(rows, layouts->k.tokens / sequences), sizeBytes(inputs.front().dtype));
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
