// Alternates panels of a GEMM with the strip engine.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/panel_gemm.h"
#include "kernels/cpu/workspace.h"

#include <algorithm>
#include <stdexcept>

namespace fuseline::cpu {

namespace {

/// Rows of a panel, high because the library copies a B that is not packed once a panel (measured 2026-11 on a 2-core
/// Zen 5 server: unpacked, panels of 256 rows cost 2 % more than 512; packed, 64 to 512 differed by less than the
/// spread). On a loaded 2-core Xeon 2048 rows in two panels took 1.25 times as long as unfused, in one panel as long
/// (once each; perhaps because threads meet after every panel); on the idle machine one took 2 to 9 % less.
constexpr std::int64_t kPanelRows = 2048;
/// Panels begin at multiples of this, so that blocks of rows do not lie across two.
constexpr std::int64_t kPanelAlignment = 128;

/// Panels of nearly equal height, so that the last one is not thin.
std::int64_t evenPanelRows(std::int64_t rows) {
  if (rows == 0) return 0;
  const std::int64_t numPanels = (rows + kPanelRows - 1) / kPanelRows;
  const std::int64_t even = (rows + numPanels - 1) / numPanels;
  return numPanels == 1 ? rows : (even + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
}

GemmProblem inPanels(GemmProblem problem, bool isWhole) {
  problem.maxPanelRows = isWhole ? problem.m : evenPanelRows(problem.m);
  return problem;
}

bool storesSums(const ElementwiseProgram& program, const Store& store, const OperandKey& sums) {
  const Instruction& value = program.code[static_cast<std::size_t>(store.value)];
  return value.opcode == Opcode::Load && value.place.operand == sums;
}

/// The result that is the sums, in their dtype. A drained one is made by the program, row by row.
int targetOf(const GemmProblem& problem, const OperandKey& sums, const ElementwiseProgram& program,
             const std::vector<PanelOperand>& operands, const std::optional<OperandKey>& drained) {
  for (const Store& store : program.stores) {
    if (!storesSums(program, store, sums) || store.place.operand == drained) continue;
    const auto operand = std::ranges::find(operands, store.place.operand, &PanelOperand::key);
    if (operand != operands.end() && operand->binding.spec.dtype == problem.cType)
      return static_cast<int>(operand - operands.begin());
  }
  return -1;
}

/// Lanes in which the program reads the sums.
std::int64_t lanesOf(const ElementwiseProgram& program, const OperandKey& sums) {
  const auto load = std::ranges::find_if(program.code, [&](const Instruction& instruction) {
    return instruction.opcode == Opcode::Load && instruction.place.operand == sums;
  });
  return load == program.code.end() ? 1 : load->place.lanes;
}

/// A result with an element for every sum, of the same dtype: its memory can hold the sums until they are processed.
int successorOf(const GemmProblem& problem, const ElementwiseProgram& program,
                const std::vector<PanelOperand>& operands, const std::optional<OperandKey>& drained) {
  for (const Store& store : program.stores) {
    if (store.place.access != Access::Full || store.place.lanes > 1 || store.place.operand == drained) continue;
    const auto operand = std::ranges::find(operands, store.place.operand, &PanelOperand::key);
    if (operand == operands.end()) continue;
    const TensorSpec& spec = operand->binding.spec;
    if (spec.dtype == problem.cType && spec.cols() == problem.n) return static_cast<int>(operand - operands.begin());
  }
  return -1;
}

bool overlap(const std::byte* a, std::int64_t aBytes, const std::byte* b, std::int64_t bBytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(a);
  const auto second = reinterpret_cast<std::uintptr_t>(b);
  return first < second + static_cast<std::uintptr_t>(bBytes) && second < first + static_cast<std::uintptr_t>(aBytes);
}

/// From one row to the next.
std::int64_t rowBytes(const PanelOperand& operand) {
  const TensorSpec& spec = operand.binding.spec;
  if (operand.access == Access::Row || operand.access == Access::Scalar) return 0;
  return (operand.access == Access::Full ? spec.cols() : 1) * sizeBytes(spec.dtype);
}

/// Without the store of the sums in their own memory.
ElementwiseProgram withoutSelfStore(ElementwiseProgram program, const OperandKey& sums, const PanelOperand* target) {
  std::erase_if(program.stores, [&](const Store& store) {
    return target && store.place.operand == target->key && storesSums(program, store, sums);
  });
  return program;
}

}  // namespace

PanelGemm::PanelGemm(GemmProblem problem, const OperandKey& sums, ElementwiseProgram program,
                     std::vector<PanelOperand> operands, int threads, Binding bias, std::optional<OperandKey> drained)
    : m_sums(sums),
      m_operands(std::move(operands)),
      m_drained(drained),
      m_target(targetOf(problem, sums, program, m_operands, m_drained)),
      m_bias(std::move(bias)),
      m_program(withoutSelfStore(std::move(program), sums, target())),
      m_gemm(inPanels(problem, m_target >= 0)),
      m_successor(m_gemm.problem().maxPanelRows < problem.m ? -1
                                                            : successorOf(problem, m_program, m_operands, m_drained)),
      m_engine(m_program, problem.n / lanesOf(m_program, sums), threads,
               [this](const OperandKey& key) { return operandOf(key); }) {}

const PanelOperand* PanelGemm::target() const {
  return m_target < 0 ? nullptr : &m_operands[static_cast<std::size_t>(m_target)];
}

std::byte* PanelGemm::placeOfSums(const std::byte* a, Pointers pointers, std::byte* workspace) const {
  if (target()) return target()->binding.at(pointers);
  if (m_successor < 0) return workspace;
  const Binding& successor = m_operands[static_cast<std::size_t>(m_successor)].binding;
  std::byte* const place = successor.at(pointers);
  const std::int64_t bytes = successor.spec.bytes();
  const GemmProblem& problem = m_gemm.problem();
  bool isShared = !place || overlap(place, bytes, a, problem.m * problem.aStride() * sizeBytes(problem.aType));
  for (const PanelOperand& operand : m_operands) {
    if (&operand.binding == &successor || !operand.binding) continue;
    isShared |= overlap(place, bytes, operand.binding.at(pointers), operand.binding.spec.bytes());
  }
  return isShared ? workspace : place;
}

/// Slot 0 is the panel of sums; the others follow in order.
int PanelGemm::slotOf(const OperandKey& key) const {
  const auto operand = std::ranges::find(m_operands, key, &PanelOperand::key);
  if (operand != m_operands.end()) return static_cast<int>(operand - m_operands.begin()) + 1;
  throw std::logic_error("the epilogue names operand " + toString(key) + ", which the step does not have");
}

StripOperand PanelGemm::operandOf(const OperandKey& key) const {
  if (key == m_sums) return {m_gemm.problem().cType, 0};
  const int slot = slotOf(key);
  return {m_operands[static_cast<std::size_t>(slot) - 1].binding.spec.dtype, slot};
}

std::size_t PanelGemm::sumsBytes() const {
  const GemmProblem& problem = m_gemm.problem();
  if (target()) return 0;
  return workspacePart(static_cast<std::size_t>(problem.maxPanelRows * problem.n * sizeBytes(problem.cType)));
}

std::size_t PanelGemm::workspaceBytes() const {
  return sumsBytes() + workspacePart(m_gemm.workspaceBytes()) + m_engine.workspaceBytes(panelRows());
}

void PanelGemm::run(const std::byte* a, const std::byte* b, Pointers pointers, std::byte* workspace,
                    const RowSink* sink) {
  const std::int64_t bytes = m_gemm.problem().aStride() * sizeBytes(m_gemm.problem().aType);
  run([=](std::int64_t first, std::int64_t) { return a + first * bytes; }, b, pointers, workspace, sink);
}

void PanelGemm::run(const PanelSource& a, const std::byte* b, Pointers pointers, std::byte* workspace,
                    const RowSink* sink) {
  const GemmProblem& problem = m_gemm.problem();
  std::byte* const gemmWorkspace = workspace + sumsBytes();
  std::byte* const stripWorkspace = gemmWorkspace + workspacePart(m_gemm.workspaceBytes());
  std::vector<std::byte*> slots(m_operands.size() + 1);
  m_gemm.setBias(m_bias.at(pointers));
  m_gemm.prepareB(b, gemmWorkspace);
  for (std::int64_t row = 0; row < problem.m; row += problem.maxPanelRows) {
    const std::int64_t rows = std::min(problem.maxPanelRows, problem.m - row);
    const std::byte* const panel = a(row, rows);
    std::byte* const sums = placeOfSums(panel, pointers, workspace);
    slots[0] = sums;
    m_gemm.multiplyRows(panel, sums, rows, gemmWorkspace);
    if (m_program.stores.empty() && m_program.rowSums.empty()) continue;
    for (std::size_t i = 0; i < m_operands.size(); ++i) {
      const PanelOperand& operand = m_operands[i];
      slots[i + 1] = operand.binding ? operand.binding.at(pointers) + row * rowBytes(operand) : nullptr;
    }
    m_engine.run(slots, rows, stripWorkspace, row, {m_drained ? slotOf(*m_drained) : -1, sink});
  }
}

}  // namespace fuseline::cpu
