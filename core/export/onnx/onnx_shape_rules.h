// Rules for shapes and element types of what ONNX operators make, by subject, and what several of them use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_node_facts.h"

#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace fuseline::onnx_shapes {

using Node = OnnxNodeFacts;
using Tensor = ::onnx::TensorProto;
using MaybeExtents = std::optional<OnnxExtents>;

constexpr std::size_t kMaxRank = 64;

struct OnnxShapeRule {
  /// Begins with the element type of the first input for all outputs, and no shape.
  void (*run)(Node& node);
  /// Operators of the standard and of ONNX Runtime, between spaces; "com.microsoft:Attention" is not the standard one.
  std::string_view types;
};
using OnnxShapeRules = std::vector<OnnxShapeRule>;

// One for each file onnx_*_shapes.cpp.
OnnxShapeRules elementwiseShapes();
OnnxShapeRules productShapes();
OnnxShapeRules windowShapes();
OnnxShapeRules movementShapes();
OnnxShapeRules reductionShapes();
OnnxShapeRules sourceShapes();
OnnxShapeRules sequenceShapes();
OnnxShapeRules quantizedShapes();

// ---- rules that several tables have

void sameAsFirst(Node& node);
void broadcastAll(Node& node);
void reduction(Node& node);

// ---- parts of rules

void allSameAsFirst(Node& node);
OnnxExtents broadcastOf(const OnnxExtents& a, const OnnxExtents& b, OnnxFactSymbols& symbols);
/// Nothing where one of them is no axis.
std::optional<std::set<std::size_t>> axesOf(const std::vector<std::int64_t>& axes, std::size_t rank);
/// A shape that is computed says its rank where it is a vector of known length.
MaybeExtents extentsAt(const Node& node, std::size_t index, std::string_view attribute);
/// The product of these inputs, with transA and transB.
void matMulOf(Node& node, std::size_t a, std::size_t b);
/// x: [N, C, ...], the input `weight`: [channels, C / group, ...].
void convolutionBy(Node& node, std::size_t weight);

}  // namespace fuseline::onnx_shapes
