// Edits of a recipe's overrides.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/gemm_switches.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr GemmRole kGemms[] = {GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad};

bool isQuantizedAt(const Recipe& recipe, const Node& node, GemmRole gemm) {
  return std::ranges::any_of(operandRoles(), [&](OperandRole role) {
    return role.gemm == gemm && recipe.quantizerFor(role, [&](const std::string& place) { return node.isAt(place); });
  });
}

/// Does it keep whole GEMMs of this op in high precision?
bool isSwitch(const RoleOverride& special, const std::string& op) {
  return special.op == op && !special.tensor && !special.format && !special.quantizer;
}

}  // namespace

std::vector<NodeId> linearsAt(const Graph& graph, std::string_view place) {
  std::vector<NodeId> linears;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const FusibleOperation& operation = *graph.node(id).operation;
    if (operation.isQuantizable && !operation.isView && graph.node(id).isAt(place)) linears.push_back(id);
  }
  return linears;
}

std::optional<bool> isQuantized(const Recipe& recipe, const Graph& graph, std::span<const NodeId> linears,
                                GemmRole gemm) {
  const auto numQuantized =
      std::ranges::count_if(linears, [&](NodeId id) { return isQuantizedAt(recipe, graph.node(id), gemm); });
  if (linears.empty() || (numQuantized > 0 && numQuantized < std::ssize(linears))) return std::nullopt;
  return numQuantized > 0;
}

Result<Recipe> withGemmQuantized(const Recipe& recipe, const std::string& op, GemmRole gemm, bool isQuantized) {
  std::vector<RoleOverride> overrides;
  for (const RoleOverride& special : recipe.overrides()) {
    if (!isSwitch(special, op) || (special.gemm && *special.gemm != gemm)) {
      overrides.push_back(special);
      continue;
    }
    for (const GemmRole other : kGemms)
      if (!special.gemm && other != gemm) overrides.push_back({.gemm = other, .op = op});
  }
  if (!isQuantized) overrides.push_back({.gemm = gemm, .op = op});
  return Recipe::create(recipe.definition(), recipe.fields(), std::move(overrides));
}

}  // namespace fuseline
