// Binds programs to step operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_step.h"

#include "kernels/cpu/quantize/row_copies.h"

#include <algorithm>

#include <fmt/format.h>

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
  std::size_t engineBytes() const { return (m_engine.workspaceBytes(m_rows) + 63) / 64 * 64; }

  StripEngine m_engine;
  std::int64_t m_rows;
  RowCopies m_copies;
  int m_slot;
  std::vector<std::byte*> m_pointers;
};

struct GridSize {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

GridSize gridOf(const TensorSpec& spec, const Place& place) {
  return {.rows = spec.rows(), .cols = spec.cols() / place.lanes};
}

Verdict isMadeByRows(const ElementwiseProgram& program, const Step& step) {
  const auto isFull = [&](const Store& store) {
    return store.place.operand == step.copies.front().source && store.place.access == Access::Full;
  };
  if (std::ranges::any_of(program.stores, isFull)) return Verdict::yes();
  return Verdict::no(fmt::format("Step \"{}\" quantizes a result that it does not make row by row.", step.name));
}

/// The grid is that of any full operand. A program without one only sums constants; no rows give the same zeros.
Result<GridSize> findGrid(const CompileRequest& request, const std::vector<Place>& places) {
  GridSize grid;
  for (const Place& place : places) {
    const Result<fuseline::Binding> binding = requireResult(request, place.operand);
    if (!binding) return binding.error();
    if (place.access == Access::Full) return gridOf(binding->spec, place);
    if (place.access == Access::Row) grid.cols = binding->spec.numElements() / place.lanes;
    if (place.access == Access::Column) grid.rows = binding->spec.numElements();
  }
  return grid;
}

}  // namespace

std::vector<Place> placesOf(const ElementwiseProgram& program) {
  std::vector<Place> places;
  const auto add = [&](const Place& place) {
    const auto same = [&](const Place& other) { return other.operand == place.operand; };
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
  if (work->isUnrounded) return Binding{{.index = -1, .spec = work->quantizedSpec()}};
  const Result<fuseline::Binding> result = requireResult(request, key);
  if (!result) return result.error();
  return Binding{*result};
}

}  // namespace

Result<std::vector<PanelOperand>> panelOperands(const CompileRequest& request, const ElementwiseProgram& program,
                                                const std::vector<OperandKey>& internal) {
  std::vector<PanelOperand> operands;
  for (const Place& place : placesOf(program)) {
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
    const fuseline::Binding binding = isCopied ? *bindResult(request, key) : *requireResult(request, key);
    return StripOperand{binding.spec.dtype, binding ? binding.index : static_cast<int>(request.step.operands.size())};
  };
  StripEngine engine(program, grid->cols, request.settings.threads, operandOf);
  if (!request.step.copies.empty()) {
    if (const Verdict verdict = isMadeByRows(program, request.step); !verdict)
      return Error{verdict.reason(), ErrorKind::RunFailed};
    RowCopies copies(request);
    const int slot = operandOf(copies.source()).slot;
    return std::unique_ptr<Kernel>(
        std::make_unique<CopyingStripKernel>(std::move(engine), grid->rows, std::move(copies), slot));
  }
  return std::unique_ptr<Kernel>(std::make_unique<StripKernel>(std::move(engine), grid->rows));
}

Verdict areElementwise(const Graph& graph, std::span<const NodeId> members) {
  for (const NodeId id : members) {
    const Node& node = graph.node(id);
    if (!node.operation->isElementwise())
      return Verdict::no(fmt::format("{} \"{}\" is not an elementwise op, so the CPU's strip engine cannot run it.",
                                     node.operation->name, node.id));
  }
  return Verdict::yes();
}

}  // namespace fuseline::cpu
