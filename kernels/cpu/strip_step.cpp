// Binds programs to step operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/strip_step.h"

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

struct GridSize {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

GridSize gridOf(const TensorSpec& spec, const Place& place) {
  return {.rows = spec.rows(), .cols = spec.cols() / place.lanes};
}

/// The grid is that of any full operand. A program without one only sums constants; no rows give the same zeros.
Result<GridSize> findGrid(const CompileRequest& request, const std::vector<Place>& places) {
  GridSize grid;
  for (const Place& place : places) {
    const Result<Binding> binding = requireOperand(request, place.operand);
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

Result<std::vector<PanelOperand>> panelOperands(const CompileRequest& request, const ElementwiseProgram& program,
                                                const std::vector<OperandKey>& internal) {
  std::vector<PanelOperand> operands;
  for (const Place& place : placesOf(program)) {
    if (std::ranges::find(internal, place.operand) != internal.end()) continue;
    const Result<Binding> binding = requireOperand(request, place.operand);
    if (!binding) return binding.error();
    operands.push_back({place.operand, *binding, place.access});
  }
  return operands;
}

Result<std::unique_ptr<Kernel>> makeStripKernel(const CompileRequest& request, const ElementwiseProgram& program) {
  const Result<GridSize> grid = findGrid(request, placesOf(program));
  if (!grid) return grid.error();
  const auto operandOf = [&](const OperandKey& key) {
    const Binding binding = findOperand(request, key);
    return StripOperand{binding.spec.dtype, binding.index};
  };
  StripEngine engine(program, grid->cols, request.settings.threads, operandOf);
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
