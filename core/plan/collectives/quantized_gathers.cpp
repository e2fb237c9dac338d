// Finds gathered tensors that have one reader, which quantizes them with one scale, and plans their quantization first.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/quantized_gathers.h"

#include "core/plan/quantize_consumers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Gathers of blocks need both directions, as many bytes as the tensor in bf16, so that these stay in high precision.
/// Stochastic rounding depends on an element's place in the whole tensor.
bool hasOneScale(const TensorQuantizers& quantizers) {
  const auto& [rowwise, columnwise, isDequantized] = quantizers;
  return rowwise && rowwise->scaling == Scaling::PerTensor && !rowwise->roundsStochastically &&
         (columnwise == rowwise || (!columnwise && isDequantized));
}

bool gathers(const Node& node, Phase phase) {
  const auto& passes = node.operation->communication;
  if (!passes) return false;
  return phase == Phase::Forward ? passes->gathersAgain : passes->backward == CollectiveKind::AllGather;
}

}  // namespace

QuantizedGathers::QuantizedGathers(const Graph& graph, const FusionReport& report, PlanTensors& tensors,
                                   QuantizedCopies& copies, std::vector<Step>& steps)
    : m_graph(graph), m_tensors(tensors), m_copies(copies), m_steps(steps) {
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    if (gathers(graph.node(id), Phase::Forward)) findForward(id);
    if (graph.pass() == ExecutionMode::Training && gathers(graph.node(id), Phase::Backward)) findBackward(report, id);
  }
}

void QuantizedGathers::findForward(NodeId gather) {
  const Value& whole = m_graph.value(m_graph.node(gather).outputs.front());
  if (whole.uses.size() != 1 || whole.isOutput) return;
  if (const std::optional<GemmOperand> reader = readerAt(m_graph, whole.uses.front())) addIfOneScale(*reader, gather);
}

void QuantizedGathers::findBackward(const FusionReport& report, NodeId gather) {
  const Value& y = m_graph.value(m_graph.node(gather).inputs.front());
  if (!hasOneGradient(m_graph, y)) return;
  const std::optional<GemmOperand> reader = gradientReaderOf(m_graph, report, y);
  if (reader && !isReadBesideGemms(m_graph.node(reader->node))) addIfOneScale(*reader, gather);
}

/// With scales that differ from rank to rank the encoded values do not make one tensor.
void QuantizedGathers::addIfOneScale(const GemmOperand& reader, NodeId gather) {
  const Node& node = m_graph.node(reader.node);
  const TensorQuantizers& quantizers = quantizersOf(node, reader.type);
  const bool isOneTensor = rowGroups(node) == 0 && !passesOnQuantized(node, reader.type) && hasOneScale(quantizers);
  if (isOneTensor && (!quantizers.isDelayed() || m_graph.delayedScaling()->reducesAmax))
    m_gathers.emplace(std::pair(reader.node, reader.type), gather);
}

bool QuantizedGathers::isQuantized(const FusedOperation& entry, Phase phase) const {
  const TensorType type = phase == Phase::Forward ? TensorType::Input : TensorType::GradOutput;
  return std::ranges::any_of(m_gathers, [&](const auto& gathered) {
    return gathered.first.second == type && gathered.second == entry.nodes.front();
  });
}

void QuantizedGathers::addSteps(Phase phase, const GemmOperand& reader, const CopyNeeds& needs) {
  const NodeId gather = m_gathers.at({reader.node, reader.type});
  const int rows = quantizeRows(phase, reader, rowsOfRank(phase, gather));
  const int whole = gatherCodes(phase, reader, rows);
  Step step{.name = m_graph.node(gather).id + ".codes", .kernel = "gathered_codes", .phase = phase, .nodes = {gather}};
  step.operands = {{.key = {0, OperandKind::Input, 0}, .tensor = rows},
                   {.key = {0, OperandKind::Output, 0}, .tensor = whole, .access = OperandAccess::Accumulate}};
  const TensorQuantizers& quantizers = quantizersOf(m_graph.node(reader.node), reader.type);
  if (quantizers.columnwise && needs.isNeeded(reader, Usage::Columnwise)) {
    TensorSpec plain = m_tensors[whole].spec;
    plain.quantized.reset();
    step.operands.push_back({.key = {0, OperandKind::Output, 1},
                             .tensor = m_copies.addTensor(reader, Usage::Columnwise, std::move(plain)),
                             .access = OperandAccess::Write});
  }
  addStep(std::move(step));
}

int QuantizedGathers::rowsOfRank(Phase phase, NodeId gather) {
  const OperandKind kind = phase == Phase::Forward ? OperandKind::Input : OperandKind::GradOutput;
  return m_tensors.of({gather}, {0, kind, 0});
}

int QuantizedGathers::quantizeRows(Phase phase, const GemmOperand& reader, int source) {
  const bool isDelayed = quantizersOf(m_graph.node(reader.node), reader.type).isDelayed();
  const int amax = isDelayed ? -1 : amaxOfAllRanks(phase, reader, source);
  Step step{.name = m_copies.workName(reader), .kernel = "quantize", .phase = phase};
  const int rows = m_copies.addWorkOnRows(step, reader, source);
  if (amax >= 0) step.operands.push_back({.key = {0, OperandKind::Input, 2}, .tensor = amax});
  addStep(std::move(step));
  return rows;
}

/// TransformerEngine's with_amax_reduction: the scale is that of the whole tensor.
int QuantizedGathers::amaxOfAllRanks(Phase phase, const GemmOperand& reader, int source) {
  const std::string name = m_copies.workName(reader);
  const int amax = m_tensors.add("amax:" + name, scaleSpec(), TensorRole::Intermediate);
  m_tensors[amax].isKept = true;  // backends clear the amaxes of all steps at once
  const OperandKey found{0, OperandKind::Output, 2};
  Step search{.name = name + ".amax", .kernel = "quantize", .phase = phase};
  search.copies.push_back(
      {.name = name, .reader = reader.node, .type = reader.type, .quantizers = {}, .spec = m_tensors[source].spec});
  search.operands = {{.key = search.copies.front().source, .tensor = source},
                     {.key = found, .tensor = amax, .access = OperandAccess::Write}};
  addStep(std::move(search));
  Step reduction{.name = name + ".amax_of_ranks", .kernel = "all-reduce", .phase = phase};
  reduction.collective = CollectiveWork{.kind = CollectiveKind::AllReduce, .reduction = Reduction::Max};
  reduction.operands = {{.key = found, .tensor = amax, .access = OperandAccess::Accumulate}};
  addStep(std::move(reduction));
  return amax;
}

int QuantizedGathers::gatherCodes(Phase phase, const GemmOperand& reader, int rows) {
  const NodeId gather = m_gathers.at({reader.node, reader.type});
  const Node& node = m_graph.node(gather);
  const ValueId value = phase == Phase::Forward ? node.outputs.front() : node.inputs.front();
  const int whole = m_copies.addTensor(reader, Usage::Rowwise, m_graph.value(value).spec);
  Step step{.name = node.id, .kernel = "all-gather", .phase = phase, .nodes = {gather}, .note = "quantized values"};
  step.collective = CollectiveWork{.kind = CollectiveKind::AllGather};
  step.operands = {{.key = {0, OperandKind::Input, 0}, .tensor = rows},
                   {.key = {0, OperandKind::Output, 0}, .tensor = whole, .access = OperandAccess::Write}};
  addStep(std::move(step));
  return whole;
}

void QuantizedGathers::addStep(Step step) {
  m_tensors.countBytes(step);
  m_steps.push_back(std::move(step));
}

}  // namespace fuseline
