// Kernel "norm_rotary": RMSNorm of each head and its rotary embedding in one launch; backward in one, and another for
// gamma's gradient.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rotary_form.h"
#include "kernels/cuda/attention/norm_rotary_launch.h"
#include "kernels/cuda/attention/rotary_turns.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/attention/split_rotary.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

KernelDef norm_rotary();

namespace {

constexpr int kNorm = 0;  // members
constexpr int kRotary = 1;

struct NormRotaryParts {
  NormRotaryTask task;  // without pointers
  RotaryForm form;
  TokenLayout layout;
  Binding x, gamma, rstd, sums, starts;
  Binding y;                 // or its gradient
  Binding gradX, gradGamma;  // backward; absent: not wanted
  std::optional<StepCopies> copies;
  bool isBackward = false;
};

class NormRotaryKernel final : public Kernel {
 public:
  NormRotaryKernel(NormRotaryParts parts, const DeviceContext& device) : m(std::move(parts)), m_device(device) {}

  std::size_t workspaceBytes() const override {
    if (!m.gradGamma) return 0;
    return workspacePart(static_cast<std::size_t>(numBlocks() * m.layout.channels) * sizeof(float));
  }

  void run(Pointers pointers, std::byte* workspace) override {
    checkOnce(pointers);
    NormRotaryTask task = m.task;
    task.x = m.x.at(pointers);
    task.gamma = m.gamma.at(pointers);
    task.y = m.y.at(pointers);
    task.rstd = reinterpret_cast<float*>(m.rstd.at(pointers));
    task.sums = countsAt(m.sums, pointers);
    task.starts = countsAt(m.starts, pointers);
    if (m.copies) task.codes = rotaryCodes(*m.copies, pointers, m_device).front();
    if (!m.isBackward) return launchNormRotaryForward(task, m_device.stream);
    task.dx = m.gradX.at(pointers);
    if (m.gradGamma) task.gammaSums = reinterpret_cast<float*>(workspace);
    launchNormRotaryBackward(task, numBlocks(), m_device.stream);
    if (m.gradGamma) launchGammaGradient(task, numBlocks(), m.gradGamma.at(pointers), m_device.stream);
  }

 private:
  /// At least one: without tokens the gradient of gamma is 0.
  int numBlocks() const {
    constexpr int kBlocksOfMultiprocessor = 8;
    const std::int64_t most = std::int64_t{kBlocksOfMultiprocessor} * m_device.numMultiprocessors;
    return static_cast<int>(std::clamp<std::int64_t>(m.layout.batch * m.layout.tokens, 1, most));
  }

  void checkOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true) || (!m.sums && !m.starts)) return;
    const Result<std::vector<std::int64_t>> positions = rotaryPositions(
        m.form, m.layout, readCounts(m.sums, pointers, m_device), readCounts(m.starts, pointers, m_device));
    if (!positions) throw std::runtime_error(positions.error().message);
  }

  NormRotaryParts m;
  const DeviceContext& m_device;
  bool m_isChecked = false;
};

/// Fills what the layout and the rotary embedding say.
void describe(const Attributes& rotary, NormRotaryParts& parts) {
  NormRotaryTask& task = parts.task;
  const TokenLayout& layout = parts.layout;
  task.batch = layout.batch;
  task.tokens = layout.tokens;
  const std::int64_t rowWidth = layout.heads * layout.channels;
  task.batchRows = layout.batchStride / rowWidth;
  task.tokenRows = layout.tokenStride / rowWidth;
  const auto rowStride = [&](const Binding& tensor) {
    return tensor.rowStride > 0 ? tensor.rowStride : layout.heads * layout.channels;
  };
  task.rowStrideOfX = rowStride(parts.x);
  task.rowStrideOfDx = rowStride(parts.gradX);
  task.heads = layout.heads;
  task.channels = layout.channels;
  task.numPairs = parts.form.numPairs();
  task.isInterleaved = parts.form.isInterleaved;
  const double factor = rotaryAttentionFactor(rotary);
  task.cosineFactor = static_cast<float>(factor);
  task.sineFactor = static_cast<float>(parts.isBackward ? -factor : factor);
  task.offset = parts.form.offset;
  task.numSequences = parts.sums ? numSequences(parts.sums.spec) : 0;
  int pair = 0;
  for (const double frequency : rotaryFrequencies(rotary, rotaryLength(parts.form, layout)))
    task.turns[pair++] = turnsOf(frequency);
}

Result<std::unique_ptr<Kernel>> compileNormRotary(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const Attributes& norm = request.member(kNorm).attributes;
  const Attributes& rotary = request.member(kRotary).attributes;
  NormRotaryParts parts{
      .form = rotaryForm(rotary),
      .x = findOperand(request, {kNorm, OperandKind::Input, 0}),
      .gamma = findOperand(request, {kNorm, OperandKind::Parameter, 0}),
      .rstd = findOperand(request, {kNorm, OperandKind::Residual, 0}),
      .y = findOperand(request, {kRotary, isForward ? OperandKind::Output : OperandKind::GradOutput, 0}),
      .gradX = findOperand(request, {kNorm, OperandKind::GradInput, 0}),
      .gradGamma = findOperand(request, {kNorm, OperandKind::GradParameter, 0}),
      .copies = {},
      .isBackward = !isForward};
  const auto counts = [&](int slot) {
    return slot < 0 ? Binding() : findOperand(request, {kRotary, OperandKind::Input, slot});
  };
  parts.sums = counts(parts.form.cuSeqlensSlot);
  parts.starts = counts(parts.form.startPositionsSlot);
  const TensorSpec& x = request.graph.spec(request.step.nodes[kRotary], OperandKind::Input, 0);
  const Result<TokenLayout> layout = rotaryLayout(parts.form, x.shape);
  if (!layout) return layout.error();
  Result<std::optional<StepCopies>> copies = StepCopies::ifAny(request);
  if (!copies) return copies.error();
  parts.copies = std::move(*copies);
  parts.layout = *layout;
  parts.task.element = elementOf(x.dtype);
  parts.task.eps = static_cast<float>(norm.real("eps"));
  parts.task.isGammaZeroCentred = norm.boolean("zero_centered_gamma");
  describe(rotary, parts);
  return std::unique_ptr<Kernel>(std::make_unique<NormRotaryKernel>(std::move(parts), request.device));
}

Verdict supportsNormRotary(const KernelQuery& query) {
  const std::int64_t channels = rotaryForm(query.graph.node(query.members[kRotary]).attributes).dim;
  if (channels <= NormRotaryTask::kMaxChannels) return Verdict::yes();
  return Verdict::no(fmt::format("On a GPU this pass supports heads of up to {} channels; these have {}.",
                                 NormRotaryTask::kMaxChannels, channels));
}

Verdict canQuantizeHeads(const KernelQuery& query) {
  const Verdict fits = supportsNormRotary(query);
  return fits ? canQuantizeTokens(query) : fits;
}

}  // namespace

KernelDef norm_rotary() {
  return {
      .name = "norm_rotary",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supportsNormRotary,
      .compile = compileNormRotary,
      .supportsCopies = canQuantizeHeads,
  };
}

}  // namespace fuseline::cuda::kernels
