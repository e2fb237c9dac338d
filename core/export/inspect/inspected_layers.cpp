// Reads quantizers of nodes, and the quantizers that a recipe without its overrides would assign.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/inspect/inspected_layers.h"

#include "core/quant/apply_recipe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>

namespace fuseline {

namespace {

constexpr std::array kTensors = {TensorType::Input, TensorType::Weight, TensorType::GradOutput};

/// Does `isQuantized` hold for both operands?
bool holdsForBoth(GemmRole gemm, const std::function<bool(OperandRole)>& isQuantized) {
  return std::ranges::all_of(operandRoles(), [&](OperandRole role) { return role.gemm != gemm || isQuantized(role); });
}

bool isQuantized(const Node& node, GemmRole gemm) {
  return holdsForBoth(
      gemm, [&](OperandRole role) { return quantizersOf(node, role.tensor).of(directionOf(role)).has_value(); });
}

bool isQuantizedByItself(const Recipe& recipe, GemmRole gemm) {
  const auto& quantizer = recipe.definition().quantizer;
  return quantizer &&
         holdsForBoth(gemm, [&](OperandRole role) { return quantizer(recipe.fields(), role).has_value(); });
}

/// The overrides have nothing to say against it.
bool isQuantizedHere(const Recipe& recipe, const Node& node, GemmRole gemm) {
  const auto isAt = [&](const std::string& place) { return node.isAt(place); };
  return holdsForBoth(gemm, [&](OperandRole role) { return recipe.quantizerFor(role, isAt).has_value(); });
}

bool hasGradient(const Graph& graph, const Node& node) {
  return graph.pass() == ExecutionMode::Training && node.takesPartInBackward();
}

bool isQuantizedForAll(const Node& node, TensorType tensor) {
  return std::ranges::all_of(operandRoles(),
                             [&](OperandRole role) { return role.tensor != tensor || isQuantized(node, role.gemm); });
}

InspectedLayer layerOf(const Graph& graph, const Node& node, const Recipe& recipe) {
  InspectedLayer layer{.node = node.id, .module = node.path, .isGrouped = rowGroups(node) > 0};
  for (const GemmRole gemm : {GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad}) {
    if (isQuantized(node, gemm) || !isQuantizedByItself(recipe, gemm)) continue;
    layer.kept.push_back(gemm);
    layer.isUnfit |= isQuantizedHere(recipe, node, gemm);
  }
  for (const TensorType tensor : kTensors) {
    if (tensor == TensorType::GradOutput && !hasGradient(graph, node)) continue;
    layer.tensors.push_back(tensor);
    if (isQuantizedForAll(node, tensor)) layer.quantized.push_back(tensor);
  }
  return layer;
}

/// Tensor type of "fc1.linear.input3@rowwise"; nothing for a quantized tensor of another node.
std::optional<TensorType> tensorOf(const InspectedLayer& layer, std::string_view copy) {
  const std::size_t dot = copy.rfind('.');
  if (dot == std::string_view::npos || copy.substr(0, dot) != layer.node) return std::nullopt;
  const std::string_view tensor = copy.substr(dot + 1);
  for (const TensorType type : kTensors)
    if (tensor.starts_with(roleName(type))) return type;
  return std::nullopt;
}

}  // namespace

std::string_view inspectName(TensorType tensor) {
  switch (tensor) {
    case TensorType::Input: return "activation";
    case TensorType::Weight: return "weight";
    case TensorType::GradOutput: return "gradient";
  }
  return "?";
}

std::vector<InspectedLayer> inspectedLayers(const Graph& graph, const Recipe& recipe) {
  std::vector<InspectedLayer> layers;
  for (const Node& node : graph.nodes())
    if (node.operation->isQuantizable && !node.operation->isView) layers.push_back(layerOf(graph, node, recipe));
  return layers;
}

double LayerLosses::signalToNoise() const {
  double lowest = std::numeric_limits<double>::infinity();
  for (const auto& [tensor, copy] : worst) lowest = std::min(lowest, copy.losses.signalToNoise);
  return lowest;
}

LayerLosses lossesOf(const InspectedLayer& layer, std::span<const CopyLosses> copies) {
  LayerLosses losses;
  for (const TensorType type : kTensors) {
    const CopyLosses* worst = nullptr;
    for (const CopyLosses& copy : copies)
      if (tensorOf(layer, copy.name) == type && (!worst || copy.losses.signalToNoise < worst->losses.signalToNoise))
        worst = &copy;
    if (worst) losses.worst.emplace_back(type, *worst);
  }
  return losses;
}

}  // namespace fuseline
