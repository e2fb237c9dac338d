// Looks for the collective in front of a linear op.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/collective_overlap.h"

namespace fuseline {

bool sendsInputGradient(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.operation->name != "BasicLinear" || !node.needs.inputs.front() || !node.needs.anyParameter()) return false;
  const NodeId producer = graph.value(node.inputs.front()).producer;
  if (producer < 0) return false;
  const auto& passes = graph.node(producer).operation->communication;
  return passes && passes->backward;
}

bool gathersOutputGradient(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.operation->name != "BasicLinear" || !node.needs.inputs.front() || !node.needs.anyParameter()) return false;
  const Value& y = graph.value(node.outputs.front());
  if (node.quantizers.gradOutput.any() || y.uses.size() != 1 || y.isOutput) return false;
  const auto& passes = graph.node(y.uses.front().node).operation->communication;
  return passes && passes->backward == CollectiveKind::AllGather;
}

}  // namespace fuseline
