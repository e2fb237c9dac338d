// Grids and refusals of elementwise steps.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/elementwise_step.h"

#include <fmt/format.h>

namespace fuseline {

Result<GridSize> findGrid(const StepRequest& request, std::span<const OperandPlace> places) {
  GridSize grid;
  for (const OperandPlace& place : places) {
    const Result<Binding> binding = requireResult(request, place.operand);
    if (!binding) return binding.error();
    const TensorSpec& spec = binding->spec;
    if (place.access == Access::Full) return GridSize{.rows = spec.rows(), .cols = spec.cols() / place.lanes};
    if (place.access == Access::Row) grid.cols = spec.numElements() / place.lanes;
    if (place.access == Access::Column) grid.rows = spec.numElements();
  }
  return grid;
}

Error notMadeByRows(const Step& step) {
  return {fmt::format("Step \"{}\" quantizes an output that it does not produce row by row.", step.name),
          ErrorKind::RunFailed};
}

Verdict areElementwise(const Graph& graph, std::span<const NodeId> members, std::string_view engine) {
  for (const NodeId id : members) {
    const Node& node = graph.node(id);
    if (!node.operation->isElementwise())
      return Verdict::no(fmt::format("{} \"{}\" is not an elementwise op, so {} cannot run it.", node.operation->name,
                                     node.id, engine));
  }
  return Verdict::yes();
}

}  // namespace fuseline
