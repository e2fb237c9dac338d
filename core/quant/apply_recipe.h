// Converts a graph and a recipe to a graph whose ops have quantizers, and to the state of these quantizers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/graph/graph.h"
#include "core/graph/phase.h"
#include "core/quant/delayed_scaling.h"
#include "core/quant/recipe.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Assigns the recipe's quantizers to every op that multiplies by weights, to every Quantize, and to FP8 attention. An
/// op with matrices that do not fit the scalings stays in high precision, with a warning that names a size that would
/// fit.
Graph applyRecipe(Graph graph, const Recipe& recipe, std::vector<Diagnostic>& diagnostics);

/// The quantizers of one tensor of a linear op.
const TensorQuantizers& quantizersOf(const Node& node, TensorType type);

/// Number of groups of rows with separate quantizers; 0: the op does not divide its rows.
std::int64_t rowGroups(const Node& node);

/// An op that only passes its input on: others consume its quantized output.
bool passesOnQuantized(const Node& node, TensorType type);

/// Does an op multiply quantized operands, forward or backward? Backward may be left in high precision.
bool multipliesCodes(const Node& node, bool isBackward);

/// "fc1.input", of a group "experts.input2", of an attention "attention.k": the prefix of the quantized tensors' names.
std::string quantizedName(const Node& node, TensorType type, std::optional<std::int64_t> group = std::nullopt);

/// State of delayed scaling that one tensor keeps from step to step.
struct QuantizerState {
  NodeId node = -1;
  TensorType type = TensorType::Input;
  std::int64_t group = 0;
  std::string scaleName;    // of an f32 [1]
  std::string historyName;  // of an f32 [history length, 1]
  float maxFinite = 0.0F;   // of the tensor's format

  Phase pass() const;
};

/// In the order of the nodes; none without delayed scaling.
std::vector<QuantizerState> quantizerStates(const Graph& graph);

TensorSpec scaleSpec();
TensorSpec historySpec(const DelayedScaling& delayed);

}  // namespace fuseline
