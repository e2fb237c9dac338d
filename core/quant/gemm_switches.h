// GEMMs of single layers in high precision, as overrides of a recipe: what TransformerEngine's debug tool calls
// DisableQuantizationGEMM.
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

/// Does the recipe quantize what this GEMM of the ops reads? Nothing: of some, not of others, or there are none. An op
/// whose sizes do not fit counts as the recipe would have it.
std::optional<bool> isQuantized(const Recipe& recipe, const Graph& graph, std::span<const NodeId> linears,
                                GemmRole gemm);

/// The recipe with this GEMM of the op in high precision, or without what puts it there at this op. Of an override of
/// all its GEMMs those for the others stay. What holds at every op stays, too.
Result<Recipe> withGemmQuantized(const Recipe& recipe, const std::string& op, GemmRole gemm, bool isQuantized);

/// "fc1: wgrad in high precision", "every op: input of fprop as e5m2".
std::string overrideText(const RoleOverride& special);

}  // namespace fuseline
