// Asks the op and its quantizers.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/input_rounding.h"

namespace fuseline {

std::optional<DType> roundedInput(const Graph& graph, const Node& node) {
  const bool isLinear = node.operation->isQuantizable && !node.operation->isView;
  const bool isNorm = node.operation->category == "Normalization";
  if ((!isLinear && !isNorm) || node.parameters.empty() || node.quantizers.input.any()) return std::nullopt;
  const DType weight = node.parameters.front().dtype;
  const bool isExact = weight == DType::F32 || graph.value(node.inputs.front()).spec.dtype == weight;
  return isExact ? std::nullopt : std::optional(weight);
}

}  // namespace fuseline
