// Opens the copies of a run, writes each block of rows to all of them, and records the amax.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/row_copies.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cpu {

namespace {

std::byte* pointerAt(Pointers pointers, int index) {
  return index < 0 ? nullptr : pointers[static_cast<std::size_t>(index)];
}

}  // namespace

Verdict canMakeRowCopies(const CopiesQuery& copies, int threads) {
  const std::int64_t blockRows = CopyRows::blockRows(copies.quantizers);
  const std::int64_t blocks = ceilDiv(copies.spec.rows(), blockRows);
  if (blocks >= threads) return Verdict::yes();
  return Verdict::no(fmt::format("The tensor has only {} of {} rows each, but there are {} threads.",
                                 blocks == 1 ? "one block" : fmt::format("{} blocks", blocks), blockRows, threads));
}

RowCopies::RowCopies(const CompileRequest& request)
    : m_graph(request.graph),
      m_plan(request.plan),
      m_step(request.step),
      m_works(request.step.copies),
      m_threads(request.settings.threads),
      m_amaxes(static_cast<std::size_t>(m_threads)) {
  for (const QuantizeWork& work : m_works) {
    m_operands.emplace_back(m_step, work);
    m_needsAmax |= m_operands.back().history >= 0;
    m_sink.blockRows = std::max(m_sink.blockRows, CopyRows::blockRows(work.quantizers));
  }
  m_sink.rowBytes = spec().cols() * sizeBytes(spec().dtype);
}

std::size_t RowCopies::scratchBytes() const {
  return sourceIndex() >= 0 ? 0 : static_cast<std::size_t>(m_threads * m_sink.blockBytes());
}

CopyRows RowCopies::open(std::size_t index, Pointers pointers) const {
  const QuantizeOperands& operands = m_operands[index];
  const auto copyAt = [&](int operand) -> CopyRows::Copy {
    if (operand < 0) return {};
    return {m_plan.spec(m_step.operands[static_cast<std::size_t>(operand)]), pointerAt(pointers, operand)};
  };
  return {spec(), m_works[index].quantizers, quantizerInputs(m_graph, m_works[index], operands, pointers),
          copyAt(operands.rowwise), copyAt(operands.columnwise)};
}

const RowSink& RowCopies::begin(Pointers pointers, std::byte* scratch) {
  m_sink.memory = pointerAt(pointers, sourceIndex());
  m_sink.scratch = scratch;
  m_sink.take = [this](int thread, std::int64_t first, std::int64_t count, const std::byte* rows) {
    take(thread, first, count, rows);
  };
  m_copies.clear();
  for (std::size_t index = 0; index < m_works.size(); ++index) m_copies.push_back(open(index, pointers));
  std::ranges::fill(m_amaxes, 0.0F);
  return m_sink;
}

void RowCopies::take(int thread, std::int64_t first, std::int64_t count, const std::byte* rows) {
  for (CopyRows& copy : m_copies) copy.write(rows, first, count);
  if (!m_needsAmax) return;
  float& amax = m_amaxes[static_cast<std::size_t>(thread)];
  amax = std::max(amax, amaxOfRows(rows, spec(), count));
}

void RowCopies::finish(Pointers pointers) {
  const float amax = *std::ranges::max_element(m_amaxes);
  for (const QuantizeOperands& operands : m_operands)
    if (std::byte* const history = pointerAt(pointers, operands.history)) recordAmax(history, amax);
}

std::optional<RowCopies> rowCopiesOf(const CompileRequest& request) {
  return request.step.copies.empty() ? std::nullopt : std::optional<RowCopies>(std::in_place, request);
}

}  // namespace fuseline::cpu
