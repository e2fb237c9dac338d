// Kernel "split_rotary": a Split and the rotary embeddings of its parts in one launch, perhaps after a bias; backward
// gathers the parts' gradients, and sums their rows for the bias. The host checks sums of sequence lengths and start
// positions in the first run.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/split_rotary.h"

#include "core/ops/rotary_form.h"
#include "kernels/cuda/attention/rotary_turns.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/attention/split_rotary.h"
#include "kernels/cuda/attention/split_rotary_launch.h"
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/quantize/step_copies.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

KernelDef split_rotary();

namespace {

/// Positions of the rows of one part.
struct PartPositions {
  RotaryForm form;
  TokenLayout layout;  // of the part by itself
  Binding sums, starts;
};

struct BoundColumns {
  Binding data;
  PartPositions positions;
  int copy = -1;  // the step's work that quantizes it; -1: none
};

struct SplitRotaryParts {
  SplitRotaryTask task;               // without pointers
  Binding packed, bias;               // backward: their gradients
  std::vector<BoundColumns> columns;  // by part
  std::optional<StepCopies> copies;
};

class SplitRotaryKernel final : public Kernel {
 public:
  SplitRotaryKernel(SplitRotaryParts parts, const DeviceContext& device) : m(std::move(parts)), m_device(device) {}

  std::size_t workspaceBytes() const override {
    return hasSums() ? workspacePart(static_cast<std::size_t>(numGroups() * m.task.width) * sizeof(float)) : 0;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    checkOnce(pointers);
    SplitRotaryTask task = m.task;
    task.packed = m.packed.at(pointers);
    if (!task.isBackward) task.bias = m.bias.at(pointers);
    for (std::size_t i = 0; i < m.columns.size(); ++i) {
      const PartPositions& positions = m.columns[i].positions;
      RotaryColumns& columns = task.parts[i];
      columns.data = m.columns[i].data.at(pointers);
      columns.sums = countsAt(positions.sums, pointers);
      columns.starts = countsAt(positions.starts, pointers);
    }
    if (m.copies) addCodes(pointers, task);
    if (!hasSums()) return launchSplitRotary(task, m_device.stream);
    const SplitRotarySums sums{
        .parts = reinterpret_cast<float*>(workspace), .groups = numGroups(), .biasGradient = m.bias.at(pointers)};
    launchSplitRotary(task, sums, m_device.stream);
  }

 private:
  bool hasSums() const { return m.task.isBackward && m.bias; }
  int numGroups() const { return numSumGroups(m.task, m_device.numMultiprocessors); }

  void addCodes(Pointers pointers, SplitRotaryTask& task) const {
    const std::vector<RotaryCodes> codes = rotaryCodes(*m.copies, pointers, m_device);
    for (std::size_t i = 0; i < m.columns.size(); ++i)
      if (const int copy = m.columns[i].copy; copy >= 0) task.parts[i].codes = codes[static_cast<std::size_t>(copy)];
  }

  void checkOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true)) return;
    for (const BoundColumns& columns : m.columns) {
      const PartPositions& positions = columns.positions;
      if (!positions.sums && !positions.starts) continue;
      const Result<std::vector<std::int64_t>> checked =
          rotaryPositions(positions.form, positions.layout, readCounts(positions.sums, pointers, m_device),
                          readCounts(positions.starts, pointers, m_device));
      if (!checked) throw std::runtime_error(checked.error().message);
    }
  }

  SplitRotaryParts m;
  const DeviceContext& m_device;
  bool m_isChecked = false;
};

bool isWhole(std::int64_t elements) { return elements % kVectorWidth == 0; }

/// Appends the angles of a part to the task.
Result<void> addRotary(const CompileRequest& request, const SplitRotary::Part& part, int& numTurns,
                       SplitRotaryTask& task, BoundColumns& bound) {
  const auto member = static_cast<std::size_t>(part.rotary);
  const Attributes& attributes = request.member(member).attributes;
  PartPositions& positions = bound.positions;
  positions.form = rotaryForm(attributes);
  const Result<TokenLayout> layout =
      rotaryLayout(positions.form, request.graph.inputSpecs(request.step.nodes[member]).front().shape);
  if (!layout) return layout.error();
  positions.layout = *layout;
  const auto counts = [&](int slot) {
    return slot < 0 ? Binding() : findOperand(request, {part.rotary, OperandKind::Input, slot});
  };
  positions.sums = counts(positions.form.cuSeqlensSlot);
  positions.starts = counts(positions.form.startPositionsSlot);

  const double factor = rotaryAttentionFactor(attributes);
  RotaryColumns& columns = task.parts[task.numParts];
  columns.channels = layout->channels;
  columns.numPairs = positions.form.numPairs();
  columns.isInterleaved = positions.form.isInterleaved;
  columns.isTokenFirst = positions.form.format == QkvFormat::Sbhd;
  columns.batch = layout->batch;
  columns.tokens = layout->tokens;
  columns.cosineFactor = static_cast<float>(factor);
  columns.sineFactor = static_cast<float>(task.isBackward ? -factor : factor);
  columns.firstTurn = numTurns;
  columns.offset = positions.form.offset;
  columns.numSequences = positions.sums ? numSequences(positions.sums.spec) : 0;
  for (const double frequency : rotaryFrequencies(attributes, rotaryLength(positions.form, *layout)))
    task.turns[numTurns++] = turnsOf(frequency);
  return {};
}

bool isVectorized(const RotaryColumns& columns) {
  const std::int64_t packetPairs = columns.isInterleaved ? kVectorWidth / 2 : kVectorWidth;
  return isWhole(columns.first) && isWhole(columns.width) && isWhole(columns.channels) &&
         columns.numPairs % packetPairs == 0 && isWhole(columns.channels - 2 * columns.numPairs);
}

int copyOf(const CompileRequest& request, const OperandKey& part) {
  const std::vector<QuantizeWork>& works = request.step.copies;
  const auto found = std::ranges::find(works, part, &QuantizeWork::source);
  return found == works.end() ? -1 : static_cast<int>(found - works.begin());
}

}  // namespace

Result<std::unique_ptr<Kernel>> compileSplitRotary(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const SplitRotary found = splitRotary(request.graph, request.step.nodes);
  const TensorSpec& packed = request.graph.spec(request.step.nodes.front(), OperandKind::Input, 0);
  SplitRotaryParts parts{.packed =
                             findOperand(request, {0, isForward ? OperandKind::Input : OperandKind::GradInput, 0})};
  if (found.hasBias())
    parts.bias = findOperand(request, {found.bias, isForward ? OperandKind::Parameter : OperandKind::GradParameter, 0});
  Result<std::optional<StepCopies>> copies = StepCopies::ifAny(request);
  if (!copies) return copies.error();
  parts.copies = std::move(*copies);
  SplitRotaryTask& task = parts.task;
  task.rows = packed.numElements() / std::max<std::int64_t>(found.width, 1);
  task.width = found.width;
  task.element = elementOf(packed.dtype);
  task.isBackward = !isForward;
  task.isVectorized = isWhole(found.width);
  int numTurns = 0;
  for (const SplitRotary::Part& part : found.parts) {
    BoundColumns& bound =
        parts.columns.emplace_back(BoundColumns{.data = findOperand(request, isForward ? part.output : part.gradient),
                                                .positions = {},
                                                .copy = copyOf(request, part.output)});
    RotaryColumns& columns = task.parts[task.numParts];
    columns.first = part.first;
    columns.rowStride = bound.data.rowStride > 0 ? bound.data.rowStride : part.width;
    columns.isInPlace = bound.data.rowStride > 0 && part.rotary < 0 && !parts.bias;
    columns.width = columns.channels = part.width;
    if (part.rotary >= 0)
      if (Result<void> added = addRotary(request, part, numTurns, task, bound); !added) return added.error();
    task.isVectorized = task.isVectorized && isVectorized(columns);
    ++task.numParts;
  }
  return std::unique_ptr<Kernel>(std::make_unique<SplitRotaryKernel>(std::move(parts), request.device));
}

namespace {

Verdict supportsSplitRotary(const KernelQuery& query) {
  const SplitRotary found = splitRotary(query.graph, query.members);
  if (found.parts.size() > SplitRotaryTask::kMaxParts)
    return Verdict::no(fmt::format("On a GPU this pass supports up to {} parts; the split has {}.",
                                   SplitRotaryTask::kMaxParts, found.parts.size()));
  std::int64_t pairs = 0;
  for (const SplitRotary::Part& part : found.parts)
    if (part.rotary >= 0)
      pairs += rotaryForm(query.graph.node(query.members[static_cast<std::size_t>(part.rotary)]).attributes).numPairs();
  if (pairs <= SplitRotaryTask::kMaxTurns) return Verdict::yes();
  return Verdict::no(fmt::format("On a GPU this pass rotates {} pairs of channels at a time; these heads have {}.",
                                 SplitRotaryTask::kMaxTurns, pairs));
}

}  // namespace

/// Works with one scale have one amax.
std::vector<RotaryCodes> rotaryCodes(const StepCopies& copies, Pointers pointers, const DeviceContext& device) {
  if (copies.isAmaxOnly()) copies.clearedAmax(pointers, device);
  const device::QuantizedOutputs outputs = copies.at(pointers);
  std::vector<RotaryCodes> codes;
  for (int i = 0; i < outputs.numPairs; ++i) {
    const device::CopyPair& pair = outputs.pairs[i];
    codes.push_back({.codes = pair.rowwise.codes,
                     .inverse = static_cast<float*>(pair.rowwise.scales),
                     .scale = pair.scale,
                     .amax = pair.amax,
                     .code = pair.rowwise.code});
  }
  return codes;
}

/// Columnwise tensors would need tiles of rows.
Verdict canQuantizeParts(const KernelQuery& query) {
  if (const Verdict fits = supportsSplitRotary(query); !fits) return fits;
  return canQuantizeTokens(query);
}

Verdict canQuantizeTokens(const KernelQuery& query) {
  if (query.phase == Phase::Backward) return refuseCopies("CUDA", query);
  const TensorQuantizers& quantizers = query.copies->quantizers;
  const bool isOfTensor = quantizers.rowwise && quantizers.rowwise->scaling == Scaling::PerTensor;
  if (query.copies->isAmaxOnly() || (isOfTensor && !quantizers.columnwise)) return Verdict::yes();
  return Verdict::no("On a GPU this pass quantizes with one scale per tensor, for consumers of rows.");
}

KernelDef split_rotary() {
  return {
      .name = "split_rotary",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supportsSplitRotary,
      .compile = compileSplitRotary,
      .supportsCopies = canQuantizeParts,
  };
}

}  // namespace fuseline::cuda::kernels
