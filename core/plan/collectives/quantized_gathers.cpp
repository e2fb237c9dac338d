// Finds gathered tensors that have one reader, which quantizes them, and plans their quantization first.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/quantized_gathers.h"

#include "core/plan/quantize_consumers.h"
#include "core/support/to_index.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

bool isOneForm(const TensorQuantizers& quantizers) {
  const auto& [rowwise, columnwise, isDequantized] = quantizers;
  if (!columnwise) return isDequantized;
  return columnwise->format == rowwise->format && columnwise->scaling == rowwise->scaling && !columnwise->isOfRowwise;
}

/// A scale, or the amax of blocks, that all ranks share.
bool hasScaleOfTensor(const TensorQuantizers& quantizers) {
  return quantizers.rowwise->scaling == Scaling::PerTensor || isNvfp4(quantizers.rowwise->scaling);
}

/// Others can be transposed, or have blocks of several rows.
bool isSentInBothDirections(const TensorQuantizers& quantizers) {
  const Scaling scaling = quantizers.rowwise->scaling;
  return scaling == Scaling::Mx1x32 || scaling == Scaling::Block1x128 || scaling == Scaling::Nv1x16;
}

/// The rows of the ranks do not follow each other in memory.
bool isSentInLines(const TensorQuantizers& quantizers, Usage direction) {
  return direction == Usage::Columnwise && traitsOf(quantizers.rowwise->scaling).isColumnwiseTransposed;
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
  if (!isOfLinear || passesOnQuantized(node, reader.type) || !quantizersOf(reader).any()) return;
  if (const Verdict sends = canSend(reader, m_graph.value(rows).spec); !sends)
    m_notes[{gather, reader.type}] = "in high precision: " + sends.reason();
  else
    m_gathers.emplace(Key(reader.node, reader.type), gather);
}

/// With scales that differ from rank to rank, and with blocks across the rows of two ranks, the encoded values do not
/// make one tensor.
Verdict QuantizedGathers::canSend(const GemmOperand& reader, const TensorSpec& rows) const {
  const TensorQuantizers& quantizers = quantizersOf(reader);
  if (!quantizers.rowwise || (m_needs.isNeeded(reader, Usage::Columnwise) && !isOneForm(quantizers)))
    return Verdict::no("its GEMMs read it in different formats");
  const Scaling scaling = quantizers.rowwise->scaling;
  if (scaling == Scaling::PerTensor && quantizers.columnwise.value_or(*quantizers.rowwise) != *quantizers.rowwise)
    return Verdict::no("its GEMMs read it with different scales");
  if (scaling == Scaling::PerTensor && quantizers.isDelayed() && !m_graph.delayedScaling()->reducesAmax)
    return Verdict::no("with reduce_amax off, the scales of the ranks differ");
  if (scaling == Scaling::PerTensor) return Verdict::yes();
  const ScalingTraits& traits = traitsOf(scaling);
  if (!isSentInBothDirections(quantizers))
    return Verdict::no(fmt::format("scaling {} does not belong to the rows of one rank", traits.name));
  if (rows.numElements() == 0) return Verdict::no("it has no elements");
  if (rows.rows() % traits.block.cols == 0 && rows.cols() % traits.block.cols == 0) return Verdict::yes();
  return Verdict::no(fmt::format("the rows of a rank, {}, are not multiples of {}", toString(rows), traits.block.cols));
}

std::string QuantizedGathers::noteOf(const FusedOperation& entry, Phase phase) const {
  const auto found =
      m_notes.find({entry.nodes.front(), phase == Phase::Forward ? TensorType::Input : TensorType::GradOutput});
  return found == m_notes.end() || entry.isFused() ? std::string() : found->second;
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
  const bool isRowwise = sent.front().direction == Usage::Rowwise;
  if (isRowwise && hasScaleOfTensor(quantizersOf(reader))) addScaleOfTensor(phase, reader, sent.front().tensor);
}

void QuantizedGathers::orderColumns(Phase phase, const GemmOperand& reader) {
  const auto found = m_unordered.find({reader.node, reader.type});
  if (found == m_unordered.end()) return;
  const SentColumns columns = found->second;
  m_unordered.erase(found);
  const NodeId gather = m_gathers.at({reader.node, reader.type});
  const int whole = m_copies.addTensor(reader, Usage::Columnwise, wholeOf(reader));
  markReloaded(phase, reader, whole);
  Step step{
      .name = m_graph.node(gather).id + ".columns", .kernel = "gathered_columns", .phase = phase, .nodes = {gather}};
  step.operands = {{.key = {0, OperandKind::Input, 0}, .tensor = columns.sent},
                   {.key = {0, OperandKind::Input, 1}, .tensor = columns.rows},
                   {.key = {0, OperandKind::Output, 0}, .tensor = whole, .access = OperandAccess::Write}};
  addStep(std::move(step));
}

const TensorSpec& QuantizedGathers::wholeOf(const GemmOperand& reader) const {
  const Node& gather = m_graph.node(m_gathers.at({reader.node, reader.type}));
  return m_graph.value(reader.type == TensorType::Input ? gather.outputs.front() : gather.inputs.front()).spec;
}

/// A tensor of forward that comes again is not saved for backward.
void QuantizedGathers::markReloaded(Phase phase, const GemmOperand& reader, int tensor) {
  if (reader.type == TensorType::Input && phase == Phase::Backward) m_tensors[tensor].role = TensorRole::Reloaded;
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
  const std::vector<int> amaxes = isOfAllRanks ? amaxesOfAllRanks(phase, reader, source) : std::vector<int>();
  Step step{.name = m_copies.workName(reader), .kernel = "quantize", .phase = phase};
  const std::vector<Usage> directions = quantizedDirections(reader);
  const std::vector<int> rows = m_copies.addWorkOnRows(step, reader, source, directions);
  for (std::size_t index = 0; index < rows.size(); ++index)
    m_rows[{reader.node, reader.type}].push_back({directions[index], rows[index]});
  for (int slot = 0; slot < static_cast<int>(amaxes.size()); ++slot)
    step.operands.push_back({.key = {0, OperandKind::Input, 2 + slot}, .tensor = amaxes[toIndex(slot)]});
  addStep(std::move(step));
}

/// One of the tensor, and one of its transform if that is quantized.
std::vector<std::string> QuantizedGathers::amaxNames(const GemmOperand& reader) const {
  std::vector<std::string> names = {"amax:" + m_copies.workName(reader)};
  for (const Usage direction : quantizedDirections(reader))
    if (formOf(*quantizersOf(reader).of(direction), direction).isTransformed)
      names.push_back("transformed_" + names.front());
  return names;
}

/// TransformerEngine's with_amax_reduction: the scale is that of the whole tensor. One launch for all amaxes.
std::vector<int> QuantizedGathers::amaxesOfAllRanks(Phase phase, const GemmOperand& reader, int source) {
  const std::string name = m_copies.workName(reader);
  Step search{.name = name + ".amax", .kernel = "quantize", .phase = phase};
  search.copies.push_back(
      {.name = name, .reader = reader.node, .type = reader.type, .quantizers = {}, .spec = m_tensors[source].spec});
  search.operands = {{.key = search.copies.front().source, .tensor = source}};
  Step reduction{.name = name + ".amax_of_ranks", .kernel = "all-reduce", .phase = phase};
  reduction.collective = CollectiveWork{.kind = CollectiveKind::AllReduce, .reduction = Reduction::Max};
  std::vector<int> amaxes;
  for (const std::string& amaxName : amaxNames(reader)) {
    const OperandKey found{0, OperandKind::Output, 2 + static_cast<int>(amaxes.size())};
    const int amax = m_tensors.add(amaxName, scaleSpec(), TensorRole::Intermediate);
    m_tensors[amax].isKept = true;  // backends clear the amaxes of all steps at once
    search.operands.push_back({.key = found, .tensor = amax, .access = OperandAccess::Write});
    reduction.operands.push_back({.key = found, .tensor = amax, .access = OperandAccess::Accumulate});
    amaxes.push_back(amax);
  }
  addStep(std::move(search));
  addStep(std::move(reduction));
  return amaxes;
}

int QuantizedGathers::destinationOf(const GemmOperand& reader, const OwnRows& rows) {
  if (!isSentInLines(quantizersOf(reader), rows.direction))
    return m_copies.addTensor(reader, rows.direction, wholeOf(reader));
  const TensorSpec& own = m_tensors[rows.tensor].spec;
  const CopyParts parts = partsOf(own);
  const std::int64_t bytes = wholeOf(reader).rows() / own.rows() * (parts.codesBytes + parts.scalesBytes);
  const int sent = m_tensors.add(m_tensors[rows.tensor].name + "s", {DType::U8, {bytes}}, m_tensors[rows.tensor].role);
  m_unordered[{reader.node, reader.type}] = {sent, rows.tensor};
  return sent;
}

/// One launch for all directions.
void QuantizedGathers::gatherRows(Phase phase, const GemmOperand& reader, const std::vector<OwnRows>& sent) {
  const NodeId gather = m_gathers.at({reader.node, reader.type});
  Step step{.name = m_graph.node(gather).id,
            .kernel = "all-gather",
            .phase = phase,
            .nodes = {gather},
            .note = "quantized values"};
  step.collective = CollectiveWork{.kind = CollectiveKind::AllGather};
  for (int slot = 0; slot < static_cast<int>(sent.size()); ++slot) {
    const OwnRows& rows = sent[static_cast<std::size_t>(slot)];
    const int gathered = destinationOf(reader, rows);
    markReloaded(phase, reader, gathered);
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
  const TensorQuantizers& quantizers = quantizersOf(reader);
  const bool isTransposed = quantizers.rowwise->scaling == Scaling::PerTensor && quantizers.columnwise &&
                            m_needs.isNeeded(reader, Usage::Columnwise);
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
