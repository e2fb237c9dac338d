// Binds programs to step operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_step.h"

#include "kernels/common/elementwise_step.h"
#include "kernels/cpu/quantize/row_copies.h"
#include "kernels/cpu/workspace.h"

#include <algorithm>

namespace fuseline::cpu {

namespace {

class StripKernel final : public Kernel {
 public:
  StripKernel(StripEngine engine, std::int64_t rows) : m_engine(std::move(engine)), m_rows(rows) {}
  std::size_t workspaceBytes() const override { return m_engine.workspaceBytes(m_rows); }
  void run(Pointers operands, std::byte* workspace) override { m_engine.run(operands, m_rows, workspace); }

 private:
  StripEngine m_engine;
  std::int64_t m_rows;
};

/// Passes the rows of one result to its quantizers. A result that is not stored has the slot after the operands.
class CopyingStripKernel final : public Kernel {
 public:
  CopyingStripKernel(StripEngine engine, std::int64_t rows, RowCopies copies, int slot)
      : m_engine(std::move(engine)), m_rows(rows), m_copies(std::move(copies)), m_slot(slot) {}
  std::size_t workspaceBytes() const override { return engineBytes() + m_copies.scratchBytes(); }
  void run(Pointers operands, std::byte* workspace) override {
    m_pointers.assign(operands.begin(), operands.end());
    m_pointers.push_back(nullptr);
    m_engine.run(m_pointers, m_rows, workspace, 0, {m_slot, &m_copies.begin(operands, workspace + engineBytes())});
    m_copies.finish();
  }

 private:
  std::size_t engineBytes() const { return workspacePart(m_engine.workspaceBytes(m_rows)); }

  StripEngine m_engine;
  std::int64_t m_rows;
  RowCopies m_copies;
  int m_slot;
  std::vector<std::byte*> m_pointers;
};

bool isMadeByRows(const ElementwiseProgram& program, const Step& step) {
  const auto isFull = [&](const Store& store) {
    return store.place.operand == step.copies.front().source && store.place.access == Access::Full;
  };
  return std::ranges::any_of(program.stores, isFull);
}

}  // namespace

std::vector<OperandPlace> placesOf(const ElementwiseProgram& program) {
  std::vector<OperandPlace> places;
  const auto add = [&](const OperandPlace& place) {
    const auto same = [&](const OperandPlace& other) { return other.operand == place.operand; };
    if (std::ranges::none_of(places, same)) places.push_back(place);
  };
  for (const Instruction& instruction : program.code)
    if (instruction.opcode == Opcode::Load) add(instruction.place);
  for (const Store& store : program.stores) add(store.place);
  for (const ColumnSum& sum : program.columnSums) add(sum.place);
  for (const RowSum& sum : program.rowSums) add(sum.place);
  return places;
}

namespace {

/// An operand, or a result that is quantized. If that is done before it is rounded, its rows are made elsewhere.
Result<Binding> bindResult(const CompileRequest& request, const OperandKey& key) {
  const QuantizeWork* const work = request.step.workOn(key);
  if (!work) return requireOperand(request, key);
  if (work->isUnrounded) return Binding{.index = -1, .spec = work->quantizedSpec()};
  return requireResult(request, key);
}

}  // namespace

Result<std::vector<PanelOperand>> panelOperands(const CompileRequest& request, const ElementwiseProgram& program,
                                                const std::vector<OperandKey>& internal) {
  std::vector<PanelOperand> operands;
  for (const OperandPlace& place : placesOf(program)) {
    if (std::ranges::find(internal, place.operand) != internal.end()) continue;
    const Result<Binding> binding = bindResult(request, place.operand);
    if (!binding) return binding.error();
    operands.push_back({place.operand, *binding, place.access});
  }
  return operands;
}

Result<std::unique_ptr<Kernel>> makeStripKernel(const CompileRequest& request, const ElementwiseProgram& program) {
  const Result<GridSize> grid = findGrid(request, placesOf(program));
  if (!grid) return grid.error();
  const auto operandOf = [&](const OperandKey& key) {
    const bool isCopied = request.step.workOn(key) != nullptr;
    const Binding binding = isCopied ? *bindResult(request, key) : *requireResult(request, key);
    return StripOperand{binding.spec.dtype, binding ? binding.index : static_cast<int>(request.step.operands.size())};
  };
  StripEngine engine(program, grid->cols, request.settings.threads, operandOf);
  if (!request.step.copies.empty()) {
    if (!isMadeByRows(program, request.step)) return notMadeByRows(request.step);
    RowCopies copies(request);
    const int slot = operandOf(copies.source()).slot;
    return std::unique_ptr<Kernel>(
        std::make_unique<CopyingStripKernel>(std::move(engine), grid->rows, std::move(copies), slot));
  }
  return std::unique_ptr<Kernel>(std::make_unique<StripKernel>(std::move(engine), grid->rows));
}

Verdict areElementwise(const Graph& graph, std::span<const NodeId> members) {
  return fuseline::areElementwise(graph, members, "the CPU's strip engine");
}

}  // namespace fuseline::cpu
