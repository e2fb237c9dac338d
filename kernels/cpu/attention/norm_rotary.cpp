// Kernel "norm_rotary": RMSNorm of each head and its rotary embedding, one token after the other, and their gradients.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rotary_form.h"
#include "core/runtime/step_operand.h"
#include "kernels/cpu/attention/attention_functions.h"
#include "kernels/cpu/attention/rotary_angles.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/norm/norm_functions.h"
#include "kernels/cpu/quantize/row_copies.h"

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <omp.h>

namespace fuseline::cpu::kernels {

KernelDef norm_rotary();

namespace {

constexpr int kNorm = 0;  // members
constexpr int kRotary = 1;
constexpr std::int64_t kElementsPerNormThread = 8192;

struct NormRotaryParts {
  RotaryForm form;
  TokenLayout layout;
  float eps = 0.0F;
  bool isGammaZeroCentred = false;
  Binding x, gamma, rstd, cuSeqlens, startPositions;
  Binding y;                        // or its gradient
  Binding gradX, gradGamma;         // backward; absent: not wanted
  std::optional<RowCopies> copies;  // forward: y quantized, or its amax
  int threads = 1;
};

class NormRotaryKernel : public Kernel {
 public:
  NormRotaryKernel(NormRotaryParts parts, RotaryAngles angles) : m(std::move(parts)), m_angles(std::move(angles)) {}

  /// For each thread three rows of all heads, angles, and sums for gamma; then gamma itself.
  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>((m.threads * threadFloats() + channels()) * 4);
  }

 protected:
  std::int64_t channels() const { return paddedWidth(m.layout.channels); }
  std::int64_t width() const { return m.layout.heads * m.layout.channels; }
  std::int64_t rowFloats() const { return paddedWidth(width()); }
  std::int64_t threadFloats() const { return 3 * rowFloats() + 4 * channels(); }

  struct ThreadRows {
    float* x;
    float* y;
    float* dx;
    float* angles;
    float* sums;     // of one token, for the gradient of gamma
    double* totals;  // of all tokens of the thread
  };
  ThreadRows rowsOf(std::byte* workspace, int thread) const {
    float* const first = reinterpret_cast<float*>(workspace) + thread * threadFloats();
    float* const angles = first + 3 * rowFloats();
    return {first,  first + rowFloats(), first + 2 * rowFloats(),
            angles, angles + channels(), reinterpret_cast<double*>(angles + 2 * channels())};
  }
  float* gammaIn(std::byte* workspace) const {
    return reinterpret_cast<float*>(workspace) + m.threads * threadFloats();
  }

  float* readGamma(Pointers pointers, std::byte* workspace) const {
    float* const gamma = gammaIn(workspace);
    headRowFunctions(m.gamma.spec.dtype)
        .read({.data = m.gamma.at(pointers), .stride = 0}, 1, m.layout.channels, 1.0F, gamma, channels());
    for (std::int64_t i = 0; m.isGammaZeroCentred && i < m.layout.channels; ++i) gamma[i] += 1.0F;
    return gamma;
  }

  int numThreads() const {
    const std::int64_t worth = m.layout.batch * m.layout.tokens * width() / kElementsPerNormThread;
    return static_cast<int>(std::clamp<std::int64_t>(worth, 1, m.threads));
  }

  /// Empty where a token's position is its index.
  std::vector<std::int64_t> positionsOf(Pointers pointers) const {
    if (!m.cuSeqlens && !m.startPositions) return {};
    const auto counts = [&](const Binding& binding) {
      return std::span(reinterpret_cast<const std::int64_t*>(binding.at(pointers)),
                       binding ? static_cast<std::size_t>(binding.spec.numElements()) : 0);
    };
    Result<std::vector<std::int64_t>> positions =
        rotaryPositions(m.form, m.layout, counts(m.cuSeqlens), counts(m.startPositions));
    if (!positions) throw std::runtime_error(positions.error().message);
    return std::move(*positions);
  }

  /// index: of the token, [batch entry, token].
  void rotate(std::int64_t index, const std::vector<std::int64_t>& positions, float* row, float* own) const {
    const std::int64_t position =
        positions.empty() ? m.form.offset + index % m.layout.tokens : positions[static_cast<std::size_t>(index)];
    if (position < 0) return;
    const float* const angles = m_angles.at(position, own);
    attentionFunctions().rotate(row, m.layout.heads, m.layout.channels, m.form.numPairs(), m.form.isInterleaved, angles,
                                angles + m_angles.numPairs());
  }

  std::int64_t firstElement(std::int64_t index) const {
    return m.layout.offset(index / m.layout.tokens, index % m.layout.tokens, 0);
  }
  RowsOf rowAt(const Binding& tensor, std::int64_t index, Pointers pointers) const {
    const std::int64_t rowStride = tensor.rowStride > 0 ? tensor.rowStride : width();
    const std::int64_t first = firstElement(index) / width() * rowStride;
    return {.data = tensor.at(pointers) + first * sizeBytes(tensor.spec.dtype), .stride = rowStride};
  }
  void read(const Binding& tensor, std::int64_t index, Pointers pointers, float* row) const {
    headRowFunctions(tensor.spec.dtype).read(rowAt(tensor, index, pointers), 1, width(), 1.0F, row, rowFloats());
  }
  void write(const float* row, const Binding& tensor, std::int64_t index, Pointers pointers) const {
    headRowFunctions(tensor.spec.dtype)
        .write(row, rowFloats(), 1, width(), nullptr, 1.0F, rowAt(tensor, index, pointers));
  }
  /// 1 / RMS of the heads of a token; null: not kept.
  float* rstdAt(std::int64_t index, Pointers pointers) const {
    auto* const all = reinterpret_cast<float*>(m.rstd.at(pointers));
    return all ? all + firstElement(index) / m.layout.channels : nullptr;
  }

  NormRotaryParts m;
  RotaryAngles m_angles;
};

class NormRotaryForward final : public NormRotaryKernel {
 public:
  using NormRotaryKernel::NormRotaryKernel;

  std::size_t workspaceBytes() const override {
    return NormRotaryKernel::workspaceBytes() + (m.copies ? m.copies->scratchBytes() : 0);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    m_sink = m.copies ? &m.copies->begin(pointers, workspace + NormRotaryKernel::workspaceBytes()) : nullptr;
    normalizeAndRotate(pointers, workspace);
    if (m.copies) m.copies->finish();
  }

 private:
  void normalizeAndRotate(Pointers pointers, std::byte* workspace) const {
    const std::vector<std::int64_t> positions = positionsOf(pointers);
    const float* const gamma = readGamma(pointers, workspace);
    const auto normalize = normForwardFunction(NormKind::Rms, DType::F32);
    const std::int64_t tokens = m.layout.batch * m.layout.tokens;
    const int threads = numThreads();
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t index = 0; index < tokens; ++index) {
      const ThreadRows rows = rowsOf(workspace, omp_get_thread_num());
      read(m.x, index, pointers, rows.x);
      normalize({.x = rows.x,
                 .y = rows.y,
                 .gamma = gamma,
                 .rstd = rstdAt(index, pointers),
                 .cols = m.layout.channels,
                 .eps = m.eps},
                0, m.layout.heads);
      rotate(index, positions, rows.y, rows.angles);
      put(rows.y, index, pointers);
    }
  }

  void put(const float* y, std::int64_t index, Pointers pointers) const {
    if (!m_sink) return write(y, m.y, index, pointers);
    const std::int64_t row = firstElement(index) / width();
    const int thread = omp_get_thread_num();
    headRowFunctions(m.copies->spec().dtype)
        .write(y, rowFloats(), 1, width(), nullptr, 1.0F,
               {.data = m_sink->rowZero(thread, row) + row * m_sink->rowBytes, .stride = width()});
    m_sink->finish(thread, row, 1);
  }

  const RowSink* m_sink = nullptr;  // in the current run
};

class NormRotaryBackward final : public NormRotaryKernel {
 public:
  using NormRotaryKernel::NormRotaryKernel;

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<std::int64_t> positions = positionsOf(pointers);
    const float* const gamma = readGamma(pointers, workspace);
    const auto differentiate = normBackwardFunction(NormKind::Rms, DType::F32);
    const std::int64_t tokens = m.layout.batch * m.layout.tokens;
    const int threads = numThreads();
    for (int thread = 0; thread < threads; ++thread)
      std::fill_n(rowsOf(workspace, thread).totals, m.layout.channels, 0.0);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (std::int64_t index = 0; index < tokens; ++index) {
      const ThreadRows rows = rowsOf(workspace, omp_get_thread_num());
      read(m.x, index, pointers, rows.x);
      read(m.y, index, pointers, rows.y);
      rotate(index, positions, rows.y, rows.angles);
      std::fill_n(rows.sums, m.layout.channels, 0.0F);
      differentiate({.x = rows.x,
                     .dy = rows.y,
                     .dx = m.gradX ? rows.dx : nullptr,
                     .gamma = gamma,
                     .rstd = rstdAt(index, pointers),
                     .dgamma = m.gradGamma ? rows.sums : nullptr,
                     .cols = m.layout.channels},
                    0, m.layout.heads);
      if (m.gradX) write(rows.dx, m.gradX, index, pointers);
      for (std::int64_t i = 0; m.gradGamma && i < m.layout.channels; ++i) rows.totals[i] += rows.sums[i];
    }
    if (m.gradGamma) writeGammaGradient(threads, pointers, workspace);
  }

 private:
  /// The sums of all threads, in their order.
  void writeGammaGradient(int threads, Pointers pointers, std::byte* workspace) const {
    const ThreadRows first = rowsOf(workspace, 0);
    for (int thread = 1; thread < threads; ++thread)
      for (std::int64_t i = 0; i < m.layout.channels; ++i) first.totals[i] += rowsOf(workspace, thread).totals[i];
    for (std::int64_t i = 0; i < m.layout.channels; ++i) first.sums[i] = static_cast<float>(first.totals[i]);
    headRowFunctions(m.gradGamma.spec.dtype)
        .write(first.sums, channels(), 1, m.layout.channels, nullptr, 1.0F,
               {.data = m.gradGamma.at(pointers), .stride = 0});
  }
};

/// All heads of a token are one row.
std::vector<QuantizeWork> worksOfTokens(const CompileRequest& request, const TokenLayout& layout) {
  std::vector<QuantizeWork> works = request.step.copies;
  for (QuantizeWork& work : works) work.spec.shape = {layout.batch * layout.tokens, layout.heads * layout.channels};
  return works;
}

Result<std::unique_ptr<Kernel>> compileNormRotary(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const Attributes& norm = request.member(kNorm).attributes;
  const Attributes& rotary = request.member(kRotary).attributes;
  NormRotaryParts parts{
      .form = rotaryForm(rotary),
      .eps = static_cast<float>(norm.real("eps")),
      .isGammaZeroCentred = norm.boolean("zero_centered_gamma"),
      .x = findOperand(request, {kNorm, OperandKind::Input, 0}),
      .gamma = findOperand(request, {kNorm, OperandKind::Parameter, 0}),
      .rstd = findOperand(request, {kNorm, OperandKind::Residual, 0}),
      .y = findOperand(request, {kRotary, isForward ? OperandKind::Output : OperandKind::GradOutput, 0}),
      .gradX = findOperand(request, {kNorm, OperandKind::GradInput, 0}),
      .gradGamma = findOperand(request, {kNorm, OperandKind::GradParameter, 0}),
      .copies = {},
      .threads = request.settings.threads};
  const Result<TokenLayout> layout =
      rotaryLayout(parts.form, request.graph.inputSpecs(request.step.nodes[kRotary]).front().shape);
  if (!layout) return layout.error();
  parts.layout = *layout;
  if (!request.step.copies.empty()) parts.copies.emplace(request, worksOfTokens(request, *layout));
  const auto counts = [&](int slot) {
    return slot < 0 ? Binding() : findOperand(request, {kRotary, OperandKind::Input, slot});
  };
  parts.cuSeqlens = counts(parts.form.cuSeqlensSlot);
  parts.startPositions = counts(parts.form.startPositionsSlot);
  const std::int64_t length = rotaryLength(parts.form, parts.layout);
  RotaryAngles angles(rotary, length, length, !isForward);
  if (isForward)
    return std::unique_ptr<Kernel>(std::make_unique<NormRotaryForward>(std::move(parts), std::move(angles)));
  return std::unique_ptr<Kernel>(std::make_unique<NormRotaryBackward>(std::move(parts), std::move(angles)));
}

}  // namespace

KernelDef norm_rotary() {
  return {
      .name = "norm_rotary",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileNormRotary,
      .writesCopies = true,
      .writesGradientCopies = false,
  };
}

}  // namespace fuseline::cpu::kernels
