// GEMMs of single layers in high precision, as overrides of a recipe: DisableQuantizationGEMM of TransformerEngine's
// debug tool.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// The linear ops at a place: the op itself, its parts, or those inside an instance.
std::vector<NodeId> linearsAt(const Graph& graph, std::string_view place);

/// Does the recipe quantize the operands of this GEMM of the ops? Nothing: for some ops but not for others, or there
/// are no ops. An op with sizes that do not fit counts as the recipe intends it.
std::optional<bool> isQuantized(const Recipe& recipe, const Graph& graph, std::span<const NodeId> linears,
                                GemmRole gemm);

/// The recipe with this GEMM of the op in high precision, or without the override that puts it there at this op. An
/// override of all GEMMs of the op is kept for the other ones. Overrides that apply to every op stay, too.
Result<Recipe> withGemmQuantized(const Recipe& recipe, const std::string& op, GemmRole gemm, bool isQuantized);

}  // namespace fuseline
