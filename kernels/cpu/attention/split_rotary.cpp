// Kernel "split_rotary": one row of the packed tensor after the other: perhaps a bias, then its parts, rotated or not.
// Backward gathers the parts' gradients in a row, and sums the columns for the bias.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/split_rotary.h"

#include "core/ops/rotary_form.h"
#include "core/runtime/step_operand.h"
#include "kernels/cpu/attention/attention_functions.h"
#include "kernels/cpu/attention/rotary_angles.h"
#include "kernels/cpu/attention/split_rotary.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/quantize/row_copies.h"

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <omp.h>

namespace fuseline::cpu::kernels {

KernelDef split_rotary();

namespace {
namespace split_rotary_parts {

constexpr std::int64_t kElementsPerSplitThread = 8192;

/// Rotation of one part by the positions of its rows.
struct PartRotation {
  RotaryForm form;
  TokenLayout layout;  // of the part by itself
  RotaryAngles angles;
  Binding cuSeqlens, startPositions;

  /// By row of the packed tensor; -1: not rotated.
  std::vector<std::int64_t> positions(Pointers pointers) const {
    const auto counts = [&](const Binding& binding) {
      return std::span(reinterpret_cast<const std::int64_t*>(binding.at(pointers)),
                       binding ? static_cast<std::size_t>(binding.spec.numElements()) : 0);
    };
    const Result<std::vector<std::int64_t>> byToken =
        rotaryPositions(form, layout, counts(cuSeqlens), counts(startPositions));
    if (!byToken) throw std::runtime_error(byToken.error().message);
    std::vector<std::int64_t> byRow(byToken->size());
    const std::int64_t width = layout.heads * layout.channels;
    for (std::int64_t entry = 0; entry < layout.batch; ++entry)
      for (std::int64_t token = 0; token < layout.tokens; ++token)
        byRow[static_cast<std::size_t>(layout.offset(entry, token, 0) / width)] =
            (*byToken)[static_cast<std::size_t>(entry * layout.tokens + token)];
    return byRow;
  }
};

struct RowPart {
  SplitRotary::Part part;
  Binding
      tensor;  // of the part, or its gradient; absent: not wanted, or zeros; with a row stride: columns of the whole
  std::optional<PartRotation> rotation;
  std::optional<RowCopies> copies;  // forward: the quantized part, or its amax
};

struct SplitRotaryParts {
  Binding whole;  // the packed tensor, or its gradient
  Binding bias;   // or its gradient; absent: none
  std::vector<RowPart> parts;
  std::int64_t width = 0;
  std::int64_t rows = 0;
  DType dtype = DType::F32;
  int threads = 1;
};

class SplitRotaryKernel : public Kernel {
 public:
  explicit SplitRotaryKernel(SplitRotaryParts parts) : m(std::move(parts)) {}

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(m.threads + 1) * 2 * static_cast<std::size_t>(rowFloats()) * sizeof(float);
  }

 protected:
  /// A row and whole vectors behind it, and angles of a position that is not in the tables.
  std::int64_t rowFloats() const { return paddedWidth(2 * m.width) + 2 * kLanePad; }
  float* rowOf(std::byte* workspace, int thread) const {
    return reinterpret_cast<float*>(workspace) + 2 * thread * rowFloats();
  }
  /// Column sums of a thread.
  double* sumsOf(std::byte* workspace, int thread) const {
    return reinterpret_cast<double*>(rowOf(workspace, thread) + rowFloats());
  }
  /// Memory that no thread has for its rows.
  float* sharedRow(std::byte* workspace) const { return rowOf(workspace, m.threads); }

  int numThreads() const {
    return static_cast<int>(std::clamp<std::int64_t>(m.rows * m.width / kElementsPerSplitThread, 1, m.threads));
  }
  RowsOf rowAt(const Binding& tensor, std::int64_t width, std::int64_t row, Pointers pointers) const {
    return {.data = tensor.at(pointers) + row * width * sizeBytes(m.dtype), .stride = width};
  }
  RowsOf rowAt(const RowPart& part, std::int64_t row, Pointers pointers) const {
    const std::int64_t stride = part.tensor.rowStride > 0 ? part.tensor.rowStride : part.part.width;
    return rowAt(part.tensor, stride, row, pointers);
  }
  std::vector<std::vector<std::int64_t>> positionsOfAll(Pointers pointers) const {
    std::vector<std::vector<std::int64_t>> positions;
    for (const RowPart& part : m.parts)
      positions.push_back(part.rotation ? part.rotation->positions(pointers) : std::vector<std::int64_t>());
    return positions;
  }

  /// floats: the part's columns. own: memory for angles.
  static void rotate(const RowPart& part, std::int64_t position, float* floats, float* own) {
    if (!part.rotation || position < 0) return;
    const PartRotation& rotation = *part.rotation;
    const float* const angles = rotation.angles.at(position, own);
    attentionFunctions().rotate(floats, rotation.layout.heads, rotation.layout.channels, rotation.form.numPairs(),
                                rotation.form.isInterleaved, angles, angles + rotation.angles.numPairs());
  }

  SplitRotaryParts m;
};

class SplitRotaryForward final : public SplitRotaryKernel {
 public:
  using SplitRotaryKernel::SplitRotaryKernel;

  std::size_t workspaceBytes() const override {
    std::size_t bytes = SplitRotaryKernel::workspaceBytes();
    for (const RowPart& part : m.parts) bytes += part.copies ? part.copies->scratchBytes() : 0;
    return bytes;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    beginCopies(pointers, workspace + SplitRotaryKernel::workspaceBytes());
    writeRows(pointers, workspace);
    for (RowPart& part : m.parts)
      if (part.copies) part.copies->finish();
  }

 private:
  void beginCopies(Pointers pointers, std::byte* scratch) {
    m_sinks.assign(m.parts.size(), nullptr);
    for (std::size_t i = 0; i < m.parts.size(); ++i) {
      std::optional<RowCopies>& copies = m.parts[i].copies;
      if (!copies) continue;
      m_sinks[i] = &copies->begin(pointers, scratch);
      scratch += copies->scratchBytes();
    }
  }

  void writeRows(Pointers pointers, std::byte* workspace) const {
    const auto positions = positionsOfAll(pointers);
    float* const bias = m.bias ? sharedRow(workspace) : nullptr;
    const HeadRowFunctions& functions = headRowFunctions(m.dtype);
    if (bias) functions.read(rowAt(m.bias, m.width, 0, pointers), 1, m.width, 1.0F, bias, paddedWidth(m.width));
    const int threads = numThreads();
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t row = 0; row < m.rows; ++row) {
      float* const floats = rowOf(workspace, omp_get_thread_num());
      functions.read(rowAt(m.whole, m.width, row, pointers), 1, m.width, 1.0F, floats, paddedWidth(m.width));
      for (std::int64_t i = 0; bias && i < m.width; ++i) floats[i] += bias[i];
      writeParts(row, positions, floats, pointers);
    }
  }

  void writeParts(std::int64_t row, const std::vector<std::vector<std::int64_t>>& positions, float* floats,
                  Pointers pointers) const {
    for (std::size_t i = 0; i < m.parts.size(); ++i) {
      const RowPart& part = m.parts[i];
      const RowSink* const sink = m_sinks[i];
      if (!part.tensor && !sink) continue;
      float* const own = floats + part.part.first;
      const std::int64_t position = part.rotation ? positions[i][static_cast<std::size_t>(row)] : -1;
      rotate(part, position, own, floats + paddedWidth(m.width));
      const int thread = omp_get_thread_num();
      const RowsOf to = sink ? RowsOf{.data = sink->rowZero(thread, row) + row * sink->rowBytes, .stride = m.width}
                             : rowAt(part, row, pointers);
      headRowFunctions(m.dtype).write(own, part.part.width, 1, part.part.width, nullptr, 1.0F, to);
      if (sink) sink->finish(thread, row, 1);
    }
  }

  std::vector<const RowSink*> m_sinks;  // by part, in the current run
};

class SplitRotaryBackward final : public SplitRotaryKernel {
 public:
  using SplitRotaryKernel::SplitRotaryKernel;

  void run(Pointers pointers, std::byte* workspace) override {
    const auto positions = positionsOfAll(pointers);
    const int threads = numThreads();
    for (int thread = 0; thread < threads; ++thread) std::fill_n(sumsOf(workspace, thread), m.width, 0.0);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (std::int64_t row = 0; row < m.rows; ++row) {
      float* const floats = rowOf(workspace, omp_get_thread_num());
      readParts(row, positions, floats, pointers);
      if (m.whole.at(pointers)) writeParts(row, floats, pointers);
      double* const sums = sumsOf(workspace, omp_get_thread_num());
      for (std::int64_t i = 0; m.bias && i < m.width; ++i) sums[i] += floats[i];
    }
    if (m.bias) writeBiasGradient(threads, pointers, workspace);
  }

 private:
  void readParts(std::int64_t row, const std::vector<std::vector<std::int64_t>>& positions, float* floats,
                 Pointers pointers) const {
    for (std::size_t i = 0; i < m.parts.size(); ++i) {
      const RowPart& part = m.parts[i];
      float* const own = floats + part.part.first;
      if (!part.tensor) {
        std::fill_n(own, part.part.width, 0.0F);
        continue;
      }
      if (isUnchanged(part) && !m.bias) continue;
      // Whole vectors: what is written behind the part is the next one's, which follows.
      headRowFunctions(m.dtype).read(rowAt(part, row, pointers), 1, part.part.width, 1.0F, own,
                                     paddedWidth(part.part.width));
      const std::int64_t position = part.rotation ? positions[i][static_cast<std::size_t>(row)] : -1;
      rotate(part, position, own, floats + paddedWidth(m.width) + kLanePad);
    }
  }

  static bool isUnchanged(const RowPart& part) { return part.tensor.rowStride > 0 && !part.rotation; }

  void writeParts(std::int64_t row, const float* floats, Pointers pointers) const {
    const RowsOf whole = rowAt(m.whole, m.width, row, pointers);
    for (const RowPart& part : m.parts) {
      if (isUnchanged(part)) continue;
      headRowFunctions(m.dtype).write(floats + part.part.first, part.part.width, 1, part.part.width, nullptr, 1.0F,
                                      {.data = whole.data + part.part.first * sizeBytes(m.dtype), .stride = m.width});
    }
  }

  /// The sums of all threads, in their order.
  void writeBiasGradient(int threads, Pointers pointers, std::byte* workspace) const {
    double* const totals = sumsOf(workspace, 0);
    for (int thread = 1; thread < threads; ++thread)
      for (std::int64_t i = 0; i < m.width; ++i) totals[i] += sumsOf(workspace, thread)[i];
    float* const sums = sharedRow(workspace);
    for (std::int64_t i = 0; i < m.width; ++i) sums[i] = static_cast<float>(totals[i]);
    headRowFunctions(m.dtype).write(sums, m.width, 1, m.width, nullptr, 1.0F, rowAt(m.bias, m.width, 0, pointers));
  }
};

Result<PartRotation> rotationOf(const CompileRequest& request, const SplitRotary::Part& part) {
  const bool isBackward = request.step.phase == Phase::Backward;
  const auto member = static_cast<std::size_t>(part.rotary);
  const Attributes& attributes = request.member(member).attributes;
  const RotaryForm form = rotaryForm(attributes);
  const Result<TokenLayout> layout =
      rotaryLayout(form, request.graph.inputSpecs(request.step.nodes[member]).front().shape);
  if (!layout) return layout.error();
  const std::int64_t length = rotaryLength(form, *layout);
  const auto counts = [&](int slot) {
    return slot < 0 ? Binding() : findOperand(request, {part.rotary, OperandKind::Input, slot});
  };
  return PartRotation{.form = form,
                      .layout = *layout,
                      .angles = RotaryAngles(attributes, length, length, isBackward),
                      .cuSeqlens = counts(form.cuSeqlensSlot),
                      .startPositions = counts(form.startPositionsSlot)};
}

/// All heads of a token are one row, in tensors of heads, too.
std::int64_t rowsOf(const TensorSpec& packed, const SplitRotary& split) {
  return packed.numElements() / std::max<std::int64_t>(split.width, 1);
}

std::optional<RowCopies> copiesOf(const CompileRequest& request, const SplitRotary::Part& part, std::int64_t rows) {
  std::vector<QuantizeWork> works;
  for (const QuantizeWork& work : request.step.copies)
    if (work.source == part.output) works.push_back(work);
  for (QuantizeWork& work : works) work.spec.shape = {rows, part.width};
  return works.empty() ? std::nullopt : std::optional<RowCopies>(std::in_place, request, std::move(works));
}

}  // namespace split_rotary_parts
}  // namespace

Result<std::unique_ptr<Kernel>> compileSplitRotary(const CompileRequest& request) {
  using namespace split_rotary_parts;
  const bool isForward = request.step.phase == Phase::Forward;
  const SplitRotary found = splitRotary(request.graph, request.step.nodes);
  const TensorSpec& packed = request.graph.spec(request.step.nodes.front(), OperandKind::Input, 0);
  SplitRotaryParts parts{.whole = findOperand(request, {0, isForward ? OperandKind::Input : OperandKind::GradInput, 0}),
                         .width = found.width,
                         .rows = rowsOf(packed, found),
                         .dtype = packed.dtype,
                         .threads = request.settings.threads};
  if (found.hasBias())
    parts.bias = findOperand(request, {found.bias, isForward ? OperandKind::Parameter : OperandKind::GradParameter, 0});
  for (const SplitRotary::Part& part : found.parts) {
    RowPart& own = parts.parts.emplace_back(RowPart{
        part, findOperand(request, isForward ? part.output : part.gradient), {}, copiesOf(request, part, parts.rows)});
    if (part.rotary < 0) continue;
    Result<PartRotation> rotation = rotationOf(request, part);
    if (!rotation) return rotation.error();
    own.rotation.emplace(std::move(*rotation));
  }
  if (isForward) return std::unique_ptr<Kernel>(std::make_unique<SplitRotaryForward>(std::move(parts)));
  return std::unique_ptr<Kernel>(std::make_unique<SplitRotaryBackward>(std::move(parts)));
}

KernelDef split_rotary() {
  return {
      .name = "split_rotary",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileSplitRotary,
      .writesCopies = true,
      .writesGradientCopies = false,
  };
}

}  // namespace fuseline::cpu::kernels
