// Finds the linear ops that would quantize a tensor that an upstream or downstream Quantize has quantized in the same
// way.
// Source: TransformerEngine's ops quantize a tensor only if it is not quantized yet.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/quantize_consumers.h"

#include "core/quant/apply_recipe.h"

#include <algorithm>

namespace fuseline {

namespace {

bool isSame(const GemmOperand& a, const GemmOperand& b) { return a.node == b.node && a.type == b.type; }

/// Do the op's GEMMs read only quantized forms of the tensor, in the forms that the Quantize produces?
bool canRead(const Graph& graph, const GemmOperand& reader, const TensorQuantizers& made) {
  const Node& node = graph.node(reader.node);
  const TensorQuantizers& wanted = quantizersOf(node, reader.type);
  const bool isPlainLinear = node.operation->isQuantizable && !node.operation->isView && rowGroups(node) == 0;
  const bool isReadWhole = wanted.rowwise && (wanted.columnwise || wanted.isDequantizedInBackward);
  return isPlainLinear && isReadWhole && wanted == made;
}

}  // namespace

std::optional<GemmOperand> readerAt(const Graph& graph, const Use& use) {
  const FusedOperation alone{.rule = nullptr, .nodes = {use.node}};
  return gemmOperand(graph, alone, {0, OperandKind::Input, use.slot});
}

std::optional<GemmOperand> gradientReaderOf(const Graph& graph, const FusionReport& report, const Value& value) {
  for (const FusedOperation& entry : report.backward) {
    const auto member = std::ranges::find(entry.nodes, value.producer);
    if (member == entry.nodes.end()) continue;
    const int index = static_cast<int>(member - entry.nodes.begin());
    return gemmOperand(graph, entry, {index, OperandKind::GradOutput, value.port});
  }
  return std::nullopt;
}

bool hasOneGradient(const Graph& graph, const Value& value) {
  const auto gradients = std::ranges::count_if(value.uses, [&](const Use& use) {
    return graph.node(use.node).needs.inputs[static_cast<std::size_t>(use.slot)];
  });
  return gradients == 1 && !value.isOutput;
}

QuantizeConsumers::QuantizeConsumers(const Graph& graph, const FusionReport& report) {
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    if (passesOnQuantized(graph.node(id), TensorType::Input)) addForward(graph, id);
    if (passesOnQuantized(graph.node(id), TensorType::GradOutput)) addBackward(graph, report, id);
  }
}

void QuantizeConsumers::addForward(const Graph& graph, NodeId id) {
  const Value& y = graph.value(graph.node(id).outputs.front());
  Handed handed{.source = {id, TensorType::Input}, .readers = {}, .isReadPlain = y.isOutput};
  for (const Use& use : y.uses) {
    const std::optional<GemmOperand> reader = readerAt(graph, use);
    if (reader && canRead(graph, *reader, graph.node(id).quantizers.input))
      handed.readers.push_back(*reader);
    else
      handed.isReadPlain = true;
  }
  m_handed.push_back(std::move(handed));
}

void QuantizeConsumers::addBackward(const Graph& graph, const FusionReport& report, NodeId id) {
  const Value& x = graph.value(graph.node(id).inputs.front());
  const std::optional<GemmOperand> reader =
      hasOneGradient(graph, x) ? gradientReaderOf(graph, report, x) : std::nullopt;
  const bool isHanded = reader && canRead(graph, *reader, graph.node(id).quantizers.gradOutput);
  Handed handed{.source = {id, TensorType::GradOutput}, .readers = {}, .isReadPlain = !isHanded};
  if (isHanded) handed.readers.push_back(*reader);
  m_handed.push_back(std::move(handed));
}

const QuantizeConsumers::Handed* QuantizeConsumers::find(const GemmOperand& source) const {
  const auto found =
      std::ranges::find_if(m_handed, [&](const Handed& handed) { return isSame(handed.source, source); });
  return found == m_handed.end() ? nullptr : &*found;
}

std::optional<GemmOperand> QuantizeConsumers::sourceOf(const GemmOperand& reader) const {
  for (const Handed& handed : m_handed)
    if (std::ranges::any_of(handed.readers, [&](const GemmOperand& one) { return isSame(one, reader); }))
      return handed.source;
  return std::nullopt;
}

std::vector<GemmOperand> QuantizeConsumers::readersOf(const GemmOperand& source) const {
  const Handed* const handed = find(source);
  return handed ? handed->readers : std::vector<GemmOperand>();
}

bool QuantizeConsumers::isReadPlain(const GemmOperand& source) const {
  const Handed* const handed = find(source);
  return handed && handed->isReadPlain;
}

}  // namespace fuseline
