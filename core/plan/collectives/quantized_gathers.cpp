// Finds gathered tensors that have one reader, which quantizes them, and plans their quantization first.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/quantized_gathers.h"

#include "core/plan/quantize_consumers.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Stochastic rounding depends on an element's place in the whole tensor.
bool isDeterministic(const TensorQuantizers& quantizers) {
  return quantizers.rowwise && !quantizers.rowwise->roundsStochastically;
}

bool isOneForm(const TensorQuantizers& quantizers) {
  return quantizers.columnwise == quantizers.rowwise || (!quantizers.columnwise && quantizers.isDequantizedInBackward);
}

/// A scale, or the amax of blocks, that all ranks share.
bool hasScaleOfTensor(const TensorQuantizers& quantizers) {
  return quantizers.rowwise->scaling == Scaling::PerTensor || isNvfp4(quantizers.rowwise->scaling);
}

/// The columnwise tensors of other blocks are transposed: rows of the ranks do not follow each other there.
bool isSentInBothDirections(const TensorQuantizers& quantizers) {
  return quantizers.rowwise->scaling == Scaling::Mx1x32;
}

bool gathers(const Node& node, Phase phase) {
  const auto& passes = node.operation->communication;
  if (!passes) return false;
  return phase == Phase::Forward ? passes->gathersAgain : passes->backward == CollectiveKind::AllGather;
}

}  // namespace

QuantizedGathers::QuantizedGathers(const Graph& graph, const FusionReport& report, const CopyNeeds& needs,
                                   PlanTensors& tensors, QuantizedCopies& copies, std::vector<Step>& steps)
    : m_graph(graph), m_needs(needs), m_tensors(tensors), m_copies(copies), m_steps(steps) {
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    if (gathers(graph.node(id), Phase::Forward)) findForward(id);
    if (graph.pass() == ExecutionMode::Training && gathers(graph.node(id), Phase::Backward)) findBackward(report, id);
  }
}

void QuantizedGathers::findForward(NodeId gather) {
  const Value& whole = m_graph.value(m_graph.node(gather).outputs.front());
  if (whole.uses.size() != 1 || whole.isOutput) return;
  if (const std::optional<GemmOperand> reader = readerAt(m_graph, whole.uses.front()))
    addIfSendable(*reader, gather, m_graph.node(gather).inputs.front());
}

void QuantizedGathers::findBackward(const FusionReport& report, NodeId gather) {
  const Value& y = m_graph.value(m_graph.node(gather).inputs.front());
  if (!hasOneGradient(m_graph, y)) return;
  const std::optional<GemmOperand> reader = gradientReaderOf(m_graph, report, y);
  if (reader && !isReadBesideGemms(m_graph.node(reader->node)))
    addIfSendable(*reader, gather, m_graph.node(gather).outputs.front());
}

void QuantizedGathers::addIfSendable(const GemmOperand& reader, NodeId gather, ValueId rows) {
  const Node& node = m_graph.node(reader.node);
  const bool isOfLinear = node.operation->isQuantizable && rowGroups(node) == 0;
  if (isOfLinear && !passesOnQuantized(node, reader.type) && isSendable(reader, m_graph.value(rows).spec))
    m_gathers.emplace(Key(reader.node, reader.type), gather);
}

/// With scales that differ from rank to rank, and with blocks across the rows of two ranks, the encoded values do not
/// make one tensor.
bool QuantizedGathers::isSendable(const GemmOperand& reader, const TensorSpec& rows) const {
  const TensorQuantizers& quantizers = quantizersOf(reader);
  if (!isDeterministic(quantizers)) return false;
  const Scaling scaling = quantizers.rowwise->scaling;
  if (scaling == Scaling::PerTensor)
    return isOneForm(quantizers) && (!quantizers.isDelayed() || m_graph.delayedScaling()->reducesAmax);
  const std::int64_t side = traitsOf(scaling).block.cols;
  if (rows.rows() % side != 0 || rows.cols() % side != 0) return false;
  if (isSentInBothDirections(quantizers)) return isOneForm(quantizers);
  return (scaling == Scaling::Block1x128 || scaling == Scaling::Nv1x16) && !m_needs.isNeeded(reader, Usage::Columnwise);
}

bool QuantizedGathers::isQuantized(const FusedOperation& entry, Phase phase) const {
  const TensorType type = phase == Phase::Forward ? TensorType::Input : TensorType::GradOutput;
  return std::ranges::any_of(m_gathers, [&](const auto& gathered) {
    return gathered.first.second == type && gathered.second == entry.nodes.front();
  });
}

void QuantizedGathers::addSteps(Phase phase, const GemmOperand& reader) {
  quantizeRows(phase, reader, rowsOfRank(phase, m_gathers.at({reader.node, reader.type})));
  std::vector<OwnRows> sent = std::exchange(m_rows[{reader.node, reader.type}], {});
  if (reader.type == TensorType::Input && sent.size() > 1) {
    m_rows[{reader.node, reader.type}] = {sent.back()};  // columnwise: backward needs it
    sent.pop_back();
  }
  gatherRows(phase, reader, sent);
  if (hasScaleOfTensor(quantizersOf(reader))) addScaleOfTensor(phase, reader, sent.front().tensor);
}

void QuantizedGathers::addRegathers(const FusedOperation& entry) {
  for (const NodeId id : entry.nodes) {
    const auto kept = m_rows.find({id, TensorType::Input});
    if (kept == m_rows.end() || kept->second.empty()) continue;
    gatherRows(Phase::Backward, {id, TensorType::Input}, std::exchange(kept->second, {}));
  }
}

const TensorQuantizers& QuantizedGathers::quantizersOf(const GemmOperand& reader) const {
  return fuseline::quantizersOf(m_graph.node(reader.node), reader.type);
}

/// A tensor with one scale is transposed after the gather.
std::vector<Usage> QuantizedGathers::quantizedDirections(const GemmOperand& reader) const {
  const TensorQuantizers& quantizers = quantizersOf(reader);
  if (!isSentInBothDirections(quantizers)) return {Usage::Rowwise};
  std::vector<Usage> directions;
  for (const Usage direction : {Usage::Rowwise, Usage::Columnwise})
    if (quantizers.of(direction) && m_needs.isNeeded(reader, direction)) directions.push_back(direction);
  return directions;
}

int QuantizedGathers::rowsOfRank(Phase phase, NodeId gather) {
  const OperandKind kind = phase == Phase::Forward ? OperandKind::Input : OperandKind::GradOutput;
  return m_tensors.of({gather}, {0, kind, 0});
}

void QuantizedGathers::quantizeRows(Phase phase, const GemmOperand& reader, int source) {
  const TensorQuantizers& quantizers = quantizersOf(reader);
  const bool isOfAllRanks = hasScaleOfTensor(quantizers) && !quantizers.isDelayed();
  const int amax = isOfAllRanks ? amaxOfAllRanks(phase, reader, source) : -1;
  Step step{.name = m_copies.workName(reader), .kernel = "quantize", .phase = phase};
  const std::vector<Usage> directions = quantizedDirections(reader);
  const std::vector<int> rows = m_copies.addWorkOnRows(step, reader, source, directions);
  for (std::size_t index = 0; index < rows.size(); ++index)
    m_rows[{reader.node, reader.type}].push_back({directions[index], rows[index]});
  if (amax >= 0) step.operands.push_back({.key = {0, OperandKind::Input, 2}, .tensor = amax});
  addStep(std::move(step));
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

/// One launch for all directions.
void QuantizedGathers::gatherRows(Phase phase, const GemmOperand& reader, const std::vector<OwnRows>& sent) {
  const NodeId gather = m_gathers.at({reader.node, reader.type});
  const Node& node = m_graph.node(gather);
  const bool isInput = reader.type == TensorType::Input;
  const ValueId whole = isInput ? node.outputs.front() : node.inputs.front();
  Step step{.name = node.id, .kernel = "all-gather", .phase = phase, .nodes = {gather}, .note = "quantized values"};
  step.collective = CollectiveWork{.kind = CollectiveKind::AllGather};
  for (int slot = 0; slot < static_cast<int>(sent.size()); ++slot) {
    const OwnRows& rows = sent[static_cast<std::size_t>(slot)];
    const int gathered = m_copies.addTensor(reader, rows.direction, m_graph.value(whole).spec);
    if (isInput && phase == Phase::Backward) m_tensors[gathered].role = TensorRole::Reloaded;
    step.operands.push_back({.key = {0, OperandKind::Input, slot}, .tensor = rows.tensor});
    step.operands.push_back(
        {.key = {0, OperandKind::Output, slot}, .tensor = gathered, .access = OperandAccess::Write});
  }
  addStep(std::move(step));
}

void QuantizedGathers::addScaleOfTensor(Phase phase, const GemmOperand& reader, int rows) {
  const NodeId gather = m_gathers.at({reader.node, reader.type});
  const int whole = m_copies.readBy(reader, Usage::Rowwise, -1);
  Step step{.name = m_graph.node(gather).id + ".codes", .kernel = "gathered_codes", .phase = phase, .nodes = {gather}};
  step.operands = {{.key = {0, OperandKind::Input, 0}, .tensor = rows},
                   {.key = {0, OperandKind::Output, 0}, .tensor = whole, .access = OperandAccess::Accumulate}};
  const bool isTransposed = quantizersOf(reader).columnwise && m_needs.isNeeded(reader, Usage::Columnwise);
  if (isTransposed) {
    TensorSpec plain = m_tensors[whole].spec;
    plain.quantized.reset();
    step.operands.push_back({.key = {0, OperandKind::Output, 1},
                             .tensor = m_copies.addTensor(reader, Usage::Columnwise, std::move(plain)),
                             .access = OperandAccess::Write});
  }
  addStep(std::move(step));
}

void QuantizedGathers::addStep(Step step) {
  m_tensors.countBytes(step);
  m_steps.push_back(std::move(step));
}

}  // namespace fuseline
