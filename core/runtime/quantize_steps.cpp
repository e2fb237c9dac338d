// Quantizing and updating scales, as core/quant does it.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"

#include "core/ops/grouped_form.h"
#include "core/ops/rank_attributes.h"
#include "core/quant/attention_quantizers.h"
#include "core/quant/copy_memory.h"
#include "core/quant/delayed_scaling.h"
#include "core/quant/hadamard.h"
#include "core/quant/matrix.h"
#include "core/tensor/grouped_copy.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline {

namespace {

int indexOf(const Step& step, const OperandKey& key) {
  const auto found = std::ranges::find(step.operands, key, &StepOperand::key);
  return found == step.operands.end() ? -1 : static_cast<int>(found - step.operands.begin());
}

std::byte* at(std::span<std::byte* const> pointers, int index) {
  return index < 0 ? nullptr : pointers[static_cast<std::size_t>(index)];
}

float amaxOf(const Tensor& x) {
  const std::vector<double> values = x.toDoubles();
  return fuseline::amaxOf(std::vector<float>(values.begin(), values.end()));
}

float transformedAmaxOf(const Tensor& x) { return fuseline::amaxOf(randomHadamard(transposed(matrixOf(x))).values); }

class QuantizeKernel final : public Kernel {
 public:
  QuantizeKernel(const Graph& graph, const Plan& plan, const Step& step) : m_graph(graph), m_plan(plan), m_step(step) {}

  void run(std::span<std::byte* const> pointers, std::byte*) override {
    const std::optional<float> common =
        commonAmax(m_graph, m_step, pointers,
                   [](const std::byte* x, const TensorSpec& spec) { return amaxOf(tensorAt(x, spec)); });
    for (const QuantizeWork& work : m_step.copies) {
      if (work.isAmaxOnly()) {
        const Tensor x = tensorAt(at(pointers, QuantizeOperands(m_step, work).source), work.spec);
        fusedOperandReference(m_graph, m_plan, m_step, work, x, pointers);
        continue;
      }
      for (QuantizePiece& piece : quantizePieces(m_graph, m_plan, m_step, work, pointers)) {
        if (common) piece.inputs.amax = common;
        quantizeReference(work.quantizers, tensorAt(piece.from, piece.source), piece);
      }
    }
  }

 private:
  static Tensor tensorAt(const std::byte* memory, const TensorSpec& spec) {
    Tensor x = Tensor::zeros(spec);
    std::copy_n(memory, x.data.size(), x.data.begin());
    return x;
  }

  const Graph& m_graph;
  const Plan& m_plan;
  const Step& m_step;
};

void make(const Tensor& x, const QuantizerSpec& quantizer, const QuantizerInputs& inputs, const TensorSpec& copy,
          std::byte* memory) {
  const Result<void> made = quantizeToMemory(x, quantizer, inputs, copy, memory);
  if (!made) throw std::runtime_error(made.error().message);
}

/// Quantizes the dequantized rowwise tensor, in the tensor's dtype.
void makeOfRowwise(const QuantizerSpec& quantizer, const QuantizePiece& piece) {
  QuantizerInputs inputs = piece.inputs;
  inputs.amax = std::nullopt;
  make(dequantizedTensor(piece.rowwise, piece.rowwiseMemory), quantizer, inputs, piece.columnwise,
       piece.columnwiseMemory);
}

class ScaleUpdate final : public Kernel {
 public:
  ScaleUpdate(const Plan& plan, const Step& step) : m_work(*step.scaleUpdate) {
    for (int i = 0; i < static_cast<int>(m_work.maxFinites.size()); ++i) {
      m_scales.push_back(indexOf(step, {0, OperandKind::Parameter, i}));
      m_histories.push_back(indexOf(step, {0, OperandKind::Residual, i}));
    }
    m_historyLength = static_cast<std::size_t>(plan.spec(step.operands[1]).numElements());
  }

  void run(std::span<std::byte* const> pointers, std::byte*) override {
    for (std::size_t i = 0; i < m_scales.size(); ++i) {
      auto& scale = *reinterpret_cast<float*>(at(pointers, m_scales[i]));
      auto* const history = reinterpret_cast<float*>(at(pointers, m_histories[i]));
      updateDelayedScaling(scale, {history, m_historyLength},
                           {.margin = m_work.options.margin,
                            .takesMostRecent = m_work.options.takesMostRecent,
                            .maxFinite = m_work.maxFinites[i]});
    }
  }

 private:
  ScaleUpdateWork m_work;
  std::vector<int> m_scales;
  std::vector<int> m_histories;
  std::size_t m_historyLength = 0;
};

class GatheredColumns final : public Kernel {
 public:
  GatheredColumns(const Plan& plan, const Step& step)
      : m_operands(step),
        m_rows(plan.spec(step.operands[static_cast<std::size_t>(m_operands.rows)])),
        m_whole(plan.spec(step.operands[static_cast<std::size_t>(m_operands.whole)])) {}

  void run(std::span<std::byte* const> pointers, std::byte*) override {
    std::byte* const whole = at(pointers, m_operands.whole);
    for (const SentLines& lines : sentLines(m_rows, m_whole)) order(lines, at(pointers, m_operands.sent), whole);
    if (!isNvfp4(m_whole.quantized->scaling)) return;
    std::memcpy(whole + tensorScaleOffset(m_whole), at(pointers, m_operands.rows) + tensorScaleOffset(m_rows),
                sizeof(float));
  }

 private:
  void order(const SentLines& lines, const std::byte* sent, std::byte* whole) const {
    const std::int64_t ranks = m_whole.rows() / m_rows.rows();
    const auto bytes = static_cast<std::size_t>(lines.bytes);
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      for (std::int64_t line = 0; line < lines.count; ++line)
        std::memcpy(whole + lines.to + (line * ranks + rank) * lines.bytes,
                    sent + lines.from + (rank * lines.count + line) * lines.bytes, bytes);
  }

  GatheredColumnsOperands m_operands;
  TensorSpec m_rows;
  TensorSpec m_whole;
};

class GatheredCodes final : public Kernel {
 public:
  GatheredCodes(const Plan& plan, const Step& step, TransposeBytes transpose)
      : m_plan(plan), m_step(step), m_operands(step), m_transpose(transpose) {}

  void run(std::span<std::byte* const> pointers, std::byte*) override {
    const std::byte* const scale = scaleIn(pointers, m_operands.rows);
    std::memcpy(scaleIn(pointers, m_operands.whole), scale, sizeof(float));
    if (m_operands.columnwise < 0) return;
    const TensorSpec& whole = spec(m_operands.whole);
    m_transpose(codesIn(pointers, m_operands.whole), whole.rows(), whole.cols(),
                codesIn(pointers, m_operands.columnwise));
    std::memcpy(scaleIn(pointers, m_operands.columnwise), scale, sizeof(float));
  }

 private:
  const TensorSpec& spec(int index) const { return m_plan.spec(m_step.operands[static_cast<std::size_t>(index)]); }
  static std::uint8_t* codesIn(std::span<std::byte* const> pointers, int index) {
    return reinterpret_cast<std::uint8_t*>(at(pointers, index));
  }
  std::byte* scaleIn(std::span<std::byte* const> pointers, int index) const {
    return at(pointers, index) + tensorScaleOffset(spec(index));
  }

  const Plan& m_plan;
  const Step& m_step;
  GatheredCodesOperands m_operands;
  TransposeBytes m_transpose;
};

}  // namespace

std::int64_t tensorScaleOffset(const TensorSpec& copy) {
  const CopyParts parts = partsOf(copy);
  return isNvfp4(copy.quantized->scaling) ? parts.amaxOffset : parts.scalesOffset;
}

GatheredCodesOperands::GatheredCodesOperands(const Step& step)
    : rows(indexOf(step, {0, OperandKind::Input, 0})),
      whole(indexOf(step, {0, OperandKind::Output, 0})),
      columnwise(indexOf(step, {0, OperandKind::Output, 1})) {}

GatheredColumnsOperands::GatheredColumnsOperands(const Step& step)
    : sent(indexOf(step, {0, OperandKind::Input, 0})),
      rows(indexOf(step, {0, OperandKind::Input, 1})),
      whole(indexOf(step, {0, OperandKind::Output, 0})) {}

std::array<SentLines, 2> sentLines(const TensorSpec& rows, const TensorSpec& whole) {
  const CopyParts own = partsOf(rows);
  const std::int64_t ranks = whole.rows() / rows.rows();
  const std::int64_t columns = rows.cols();
  const bool isByColumns = rows.quantized->scaling == Scaling::Block1x128;
  const std::int64_t scaleLines = isByColumns ? 1 : columns;
  return {SentLines{.from = 0, .to = 0, .count = columns, .bytes = own.codesBytes / columns},
          SentLines{.from = ranks * own.codesBytes,
                    .to = partsOf(whole).scalesOffset,
                    .count = scaleLines,
                    .bytes = own.scalesBytes / scaleLines}};
}

QuantizeOperands::QuantizeOperands(const Step& step, const QuantizeWork& work)
    : source(indexOf(step, work.source)),
      rowwise(indexOf(step, {work.member, OperandKind::Output, 0})),
      columnwise(indexOf(step, {work.member, OperandKind::Output, 1})),
      scale(indexOf(step, {work.member, OperandKind::Parameter, 0})),
      history(indexOf(step, {work.member, OperandKind::Residual, 0})),
      sizes(indexOf(step, {work.member, OperandKind::Input, 1})),
      knownAmax(indexOf(step, {work.member, OperandKind::Input, 2})),
      foundAmax(indexOf(step, {work.member, OperandKind::Output, 2})),
      knownTransformedAmax(indexOf(step, {work.member, OperandKind::Input, 3})),
      foundTransformedAmax(indexOf(step, {work.member, OperandKind::Output, 3})) {
  raisesFoundAmax =
      foundAmax >= 0 && step.operands[static_cast<std::size_t>(foundAmax)].access == OperandAccess::Accumulate;
}

std::string pieceName(const Node& reader, const QuantizeWork& work, std::int64_t numGroups, std::int64_t piece) {
  if (numGroups > 0) return quantizedName(reader, work.type, piece);
  const bool isOfOneGroup = work.type == TensorType::Weight && rowGroups(reader) > 0;
  const std::string name =
      isOfOneGroup ? quantizedName(reader, work.type, work.slot) : quantizedName(reader, work.type);
  const std::int64_t rank = reader.attributes.has(kRankAttribute) ? reader.attributes.integer(kRankAttribute) : 0;
  return rank > 0 ? fmt::format("{}@{}", name, rank) : name;
}

void checkGroupSizes(const Node& node, std::span<const std::int64_t> sizes, std::int64_t rows, const TensorSpec& copy) {
  if (const auto groups = divideRows(sizes, rows); !groups) throw std::runtime_error(groups.error().message);
  const Scaling scaling = copy.quantized->scaling;
  const std::int64_t multiple = gemmMultiples(scaling, copy.quantized->direction).rows;
  const auto misfit = std::ranges::find_if(sizes, [&](std::int64_t size) { return size % multiple != 0; });
  if (misfit == sizes.end()) return;
  throw std::runtime_error(fmt::format(
      "{}: group {} has {} rows, but scaling {} needs multiples of {}. Pad it to {} rows with align_size of "
      "MoEPermute, or choose other sizes.",
      node.id, misfit - sizes.begin(), *misfit, traitsOf(scaling).name, multiple, roundedUp(*misfit, multiple)));
}

namespace {

std::optional<float> floatAt(const std::byte* memory) {
  if (!memory) return std::nullopt;
  float value = 0.0F;
  std::memcpy(&value, memory, sizeof(value));
  return value;
}

/// Makes the pieces of one call.
class PieceMaker {
 public:
  PieceMaker(const Graph& graph, const Plan& plan, const Step& step, const QuantizeWork& work,
             std::span<std::byte* const> pointers)
      : m_node(graph.node(work.reader)),
        m_work(work),
        m_plan(plan),
        m_step(step),
        m_operands(step, work),
        m_pointers(pointers) {}

  std::vector<QuantizePiece> make() const {
    const std::vector<std::int64_t> sizes = groupSizes();
    if (!sizes.empty()) check(sizes);
    std::vector<QuantizePiece> pieces(std::max<std::size_t>(sizes.size(), 1));
    for (std::size_t i = 0; i < pieces.size(); ++i) describe(pieces[i], static_cast<int>(i));
    addCopies(m_operands.rowwise, sizes, &QuantizePiece::rowwise, &QuantizePiece::rowwiseMemory, pieces);
    addCopies(m_operands.columnwise, sizes, &QuantizePiece::columnwise, &QuantizePiece::columnwiseMemory, pieces);
    return pieces;
  }

 private:
  const TensorSpec& spec(int index) const { return m_plan.spec(m_step.operands[static_cast<std::size_t>(index)]); }
  const TensorSpec& anyCopy() const {
    return spec(m_operands.rowwise >= 0 ? m_operands.rowwise : m_operands.columnwise);
  }
  std::int64_t numGroups() const { return anyCopy().quantized->numGroups; }

  void check(std::span<const std::int64_t> sizes) const {
    for (const int copy : {m_operands.columnwise, m_operands.rowwise})
      if (copy >= 0) checkGroupSizes(m_node, sizes, m_work.spec.rows(), spec(copy));
  }

  /// None without groups.
  std::vector<std::int64_t> groupSizes() const {
    const std::int64_t rows = m_work.spec.rows();
    const auto count = static_cast<std::size_t>(numGroups());
    if (m_operands.sizes < 0) return std::vector<std::int64_t>(count, count > 0 ? rows / numGroups() : 0);
    std::vector<std::int64_t> sizes(count);
    std::memcpy(sizes.data(), at(m_pointers, m_operands.sizes), sizes.size() * sizeof(std::int64_t));
    return sizes;
  }

  void describe(QuantizePiece& piece, int index) const {
    const int pair = 2 * index;
    const bool hasState = m_operands.scale >= 0;
    piece.source = m_work.spec;
    piece.from = at(m_pointers, m_operands.source);
    piece.history = hasState ? at(m_pointers, m_operands.history + pair) : nullptr;
    piece.inputs.scale = floatAt(hasState ? at(m_pointers, m_operands.scale + pair) : nullptr);
    piece.inputs.amax = floatAt(at(m_pointers, m_operands.knownAmax));
    piece.inputs.transformedAmax = floatAt(at(m_pointers, m_operands.knownTransformedAmax));
    piece.inputs.name = pieceName(m_node, m_work, numGroups(), index);
  }

  void addCopies(int operand, const std::vector<std::int64_t>& sizes, TensorSpec QuantizePiece::*copy,
                 std::byte* QuantizePiece::*memory, std::vector<QuantizePiece>& pieces) const {
    if (operand < 0) return;
    std::byte* const all = at(m_pointers, operand);
    writeGroupSizes(spec(operand), sizes, all);
    const std::vector<GroupCopy> groups = groupCopies(spec(operand), sizes);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      pieces[i].*copy = groups[i].spec;
      pieces[i].*memory = all ? all + groups[i].offset : nullptr;
      if (numGroups() > 0) takeRows(pieces[i], groups[i]);
    }
  }

  void takeRows(QuantizePiece& piece, const GroupCopy& group) const {
    const TensorSpec& whole = m_work.spec;
    piece.source = {whole.dtype, group.spec.shape};
    piece.firstRow = group.firstRow;
    piece.from = at(m_pointers, m_operands.source);
    if (piece.from) piece.from += group.firstRow * whole.cols() * sizeBytes(whole.dtype);
  }

  const Node& m_node;
  const QuantizeWork& m_work;
  const Plan& m_plan;
  const Step& m_step;
  QuantizeOperands m_operands;
  std::span<std::byte* const> m_pointers;
};

Tensor rowsOf(const Tensor& x, const QuantizePiece& piece) {
  Tensor rows = Tensor::zeros({x.spec.dtype, piece.source.shape});
  const std::int64_t first = piece.firstRow * x.spec.cols() * sizeBytes(x.spec.dtype);
  std::copy_n(x.data.begin() + first, rows.data.size(), rows.data.begin());
  return rows;
}

}  // namespace

std::vector<QuantizePiece> quantizePieces(const Graph& graph, const Plan& plan, const Step& step,
                                          const QuantizeWork& work, std::span<std::byte* const> pointers) {
  return PieceMaker(graph, plan, step, work, pointers).make();
}

bool haveOneScale(const Graph& graph, const Step& step) {
  return step.copies.size() > 1 && isQuantizedAttention(graph.node(step.copies.front().reader));
}

std::optional<float> commonAmax(const Graph& graph, const Step& step, std::span<std::byte* const> pointers,
                                const std::function<float(const std::byte* x, const TensorSpec& spec)>& amaxOf) {
  if (!haveOneScale(graph, step)) return std::nullopt;
  if (QuantizeOperands(step, step.copies.front()).knownAmax >= 0) return std::nullopt;
  float amax = 0.0F;
  for (const QuantizeWork& work : step.copies)
    amax = std::fmax(amax, amaxOf(at(pointers, QuantizeOperands(step, work).source), work.spec));
  return amax;
}

void fusedOperandReference(const Graph& graph, const Plan& plan, const Step& step, const QuantizeWork& work,
                           const Tensor& x, std::span<std::byte* const> pointers) {
  if (!work.isAmaxOnly()) {
    for (const QuantizePiece& piece : quantizePieces(graph, plan, step, work, pointers))
      quantizeReference(work.quantizers, rowsOf(x, piece), piece);
    return;
  }
  const QuantizeOperands operands(step, work);
  const float amax = amaxOf(x);
  const bool isOfOthers = haveOneScale(graph, step) && &work != &step.copies.front();
  if (isOfOthers || operands.raisesFoundAmax) return recordAmax(at(pointers, operands.foundAmax), amax);
  std::memcpy(at(pointers, operands.foundAmax), &amax, sizeof(amax));
  if (operands.foundTransformedAmax < 0) return;
  const float transformed = transformedAmaxOf(x);
  std::memcpy(at(pointers, operands.foundTransformedAmax), &transformed, sizeof(transformed));
}

void recordAmax(std::byte* history, float amax) {
  float current = 0.0F;
  std::memcpy(&current, history, sizeof(current));
  current = std::fmax(current, amax);
  std::memcpy(history, &current, sizeof(current));
}

void quantizeReference(const TensorQuantizers& quantizers, const Tensor& x, const QuantizePiece& piece) {
  if (quantizers.rowwise) make(x, *quantizers.rowwise, piece.inputs, piece.rowwise, piece.rowwiseMemory);
  if (quantizers.columnwise && quantizers.columnwise->isOfRowwise)
    makeOfRowwise(*quantizers.columnwise, piece);
  else if (quantizers.columnwise)
    make(x, *quantizers.columnwise, piece.inputs, piece.columnwise, piece.columnwiseMemory);
  if (piece.history) recordAmax(piece.history, amaxOf(x));
}

std::unique_ptr<Kernel> makeQuantizeReference(const Graph& graph, const Plan& plan, const Step& step) {
  return std::make_unique<QuantizeKernel>(graph, plan, step);
}

void transposeBytes(const std::uint8_t* from, std::int64_t rows, std::int64_t cols, std::uint8_t* to) {
  constexpr std::int64_t kSide = 64;
  for (std::int64_t top = 0; top < rows; top += kSide)
    for (std::int64_t left = 0; left < cols; left += kSide)
      for (std::int64_t row = top; row < std::min(rows, top + kSide); ++row)
        for (std::int64_t col = left; col < std::min(cols, left + kSide); ++col)
          to[col * rows + row] = from[row * cols + col];
}

std::unique_ptr<Kernel> makeGatheredColumns(const Plan& plan, const Step& step) {
  return std::make_unique<GatheredColumns>(plan, step);
}

std::unique_ptr<Kernel> makeGatheredCodes(const Plan& plan, const Step& step, TransposeBytes transpose) {
  return std::make_unique<GatheredCodes>(plan, step, transpose);
}

std::unique_ptr<Kernel> makeScaleUpdate(const Plan& plan, const Step& step) {
  return std::make_unique<ScaleUpdate>(plan, step);
}

}  // namespace fuseline
