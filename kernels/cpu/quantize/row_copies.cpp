// Opens the quantized tensors of a run, writes each block of rows to all of them, and records the amax.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/row_copies.h"

#include "kernels/common/norm_step.h"
#include "kernels/cpu/elementwise/strip_functions.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace fuseline::cpu {

namespace {

std::byte* pointerAt(Pointers pointers, int index) {
  return index < 0 ? nullptr : pointers[static_cast<std::size_t>(index)];
}

/// Number of rows that are computed before they are read again, from the first-level cache if only their amax is
/// requested.
std::int64_t blockRowsOf(const TensorQuantizers& quantizers, const TensorSpec& spec) {
  constexpr std::int64_t kNearBytes = 32 * 1024;
  if (quantizers.any()) return CopyRows::blockRows(quantizers);
  return std::max<std::int64_t>(kNearBytes / std::max<std::int64_t>(spec.cols() * sizeBytes(spec.dtype), 1), 1);
}

}  // namespace

Verdict canMakeRowCopies(const KernelQuery& query) {
  const Node* const norm = normOfSeveralAxes(query);
  if (!norm) return Verdict::yes();
  return Verdict::no(fmt::format(
      "{} normalizes several axes at once: its rows have {} elements, but the quantized rows of the tensor have {}.",
      norm->id, norm->parameters.front().numElements(), query.copies->spec.cols()));
}

RowCopies::RowCopies(const CompileRequest& request, std::vector<QuantizeWork> works)
    : m_graph(request.graph),
      m_plan(request.plan),
      m_step(request.step),
      m_works(std::move(works)),
      m_spec(m_works.front().quantizedSpec()),
      m_sourceIndex(QuantizeOperands(m_step, m_works.front()).source),
      m_threads(request.settings.threads),
      m_amaxes(static_cast<std::size_t>(m_threads)) {
  for (const QuantizeWork& work : m_works) {
    m_needsAmax |= work.isAmaxOnly() || QuantizeOperands(m_step, work).history >= 0;
    m_sink.blockRows = std::max(m_sink.blockRows, blockRowsOf(work.quantizers, m_spec));
  }
  m_sink.rowBytes = spec().cols() * sizeBytes(spec().dtype);
}

std::size_t RowCopies::scratchBytes() const {
  return isMadeInPlace() ? 0 : static_cast<std::size_t>(m_threads * m_sink.blockBytes());
}

void RowCopies::open(const QuantizeWork& work, Pointers pointers) {
  if (work.isAmaxOnly()) {
    const QuantizeOperands operands(m_step, work);
    m_amaxesTo.push_back(pointerAt(pointers, operands.foundAmax));
    if (!operands.raisesFoundAmax) std::memset(m_amaxesTo.back(), 0, sizeof(float));
    return;
  }
  const QuantizePiece piece = quantizePieces(m_graph, m_plan, m_step, work, pointers).front();
  m_copies.push_back(open(work, piece));
  if (piece.history) m_amaxesTo.push_back(piece.history);
}

CopyRows RowCopies::open(const QuantizeWork& work, const QuantizePiece& piece) const {
  const auto copyOf = [&](TensorSpec copy, std::byte* memory) {
    copy.dtype = spec().dtype;
    copy.shape = spec().shape;
    return CopyRows::Copy{std::move(copy), memory};
  };
  return {spec(),
          work.quantizers,
          piece.inputs,
          0.0F,
          copyOf(piece.rowwise, piece.rowwiseMemory),
          copyOf(piece.columnwise, piece.columnwiseMemory)};
}

const RowSink& RowCopies::begin(Pointers pointers, std::byte* scratch) {
  std::byte* const result = pointerAt(pointers, m_sourceIndex);
  m_sink.memory = isMadeInPlace() ? result : nullptr;
  m_to = isMadeInPlace() ? nullptr : result;
  m_sink.scratch = scratch;
  m_sink.take = [this](int thread, std::int64_t first, std::int64_t count, const std::byte* rows) {
    take(thread, first, count, rows);
  };
  m_copies.clear();
  m_amaxesTo.clear();
  for (const QuantizeWork& work : m_works) open(work, pointers);
  std::ranges::fill(m_amaxes, 0.0F);
  return m_sink;
}

void RowCopies::take(int thread, std::int64_t first, std::int64_t count, const std::byte* rows) {
  for (CopyRows& copy : m_copies) copy.write(rows, first, count);
  if (m_to) store(first, count, rows);
  if (!m_needsAmax) return;
  float& amax = m_amaxes[static_cast<std::size_t>(thread)];
  amax = std::max(amax, amaxOfRows(rows, spec(), count));
}

void RowCopies::store(std::int64_t first, std::int64_t count, const std::byte* rows) const {
  const DType dtype = m_works.front().spec.dtype;
  const std::int64_t cols = spec().cols();
  encodeFunction(dtype)(m_to + first * cols * sizeBytes(dtype), rows, nullptr, static_cast<std::size_t>(count * cols));
}

void RowCopies::finish() {
  const float amax = *std::ranges::max_element(m_amaxes);
  for (std::byte* const to : m_amaxesTo) recordAmax(to, amax);
}

std::optional<RowCopies> rowCopiesOf(const CompileRequest& request) {
  return request.step.copies.empty() ? std::nullopt : std::optional<RowCopies>(std::in_place, request);
}

}  // namespace fuseline::cpu
