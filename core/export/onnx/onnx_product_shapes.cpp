// Shapes of products of matrices.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_shape_rules.h"

#include <map>

namespace fuseline::onnx_shapes {

namespace {

OnnxExtents matrixOf(const OnnxExtents& shape, bool isTransposed) {
  OnnxExtents result = shape;
  if (isTransposed && result.size() > 1) std::swap(result[result.size() - 1], result[result.size() - 2]);
  return result;
}

/// [..., M, K] by [..., K, N]; a vector is a matrix of one row or column, which the product does not have.
MaybeExtents productShape(OnnxExtents a, OnnxExtents b, OnnxFactSymbols& symbols) {
  if (a.empty() || b.empty()) return std::nullopt;
  const bool isRow = a.size() == 1, isColumn = b.size() == 1;
  if (isRow) a.insert(a.begin(), 1);
  if (isColumn) b.push_back(1);
  symbols.equate(a.back(), b[b.size() - 2]);
  const OnnxExtent rows = a[a.size() - 2], columns = b.back();
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  OnnxExtents result = broadcastOf(a, b, symbols);
  if (!isRow) result.push_back(rows);
  if (!isColumn) result.push_back(columns);
  return result;
}

}  // namespace

void matMulOf(Node& node, std::size_t a, std::size_t b) {
  if (!node.shape(a) || !node.shape(b)) return;
  node.setShape(0, productShape(matrixOf(*node.shape(a), node.integer("transA", 0) != 0),
                                matrixOf(*node.shape(b), node.integer("transB", 0) != 0), node.symbols()));
}

namespace {

void matMul(Node& node) { matMulOf(node, 0, 1); }

void floatIntegerMatMul(Node& node) {
  matMul(node);
  node.setType(0, Tensor::FLOAT);
}

void matMulOfBits(Node& node) {
  if (!node.shape(0) || node.shape(0)->empty()) return;
  OnnxExtents shape = *node.shape(0);
  shape.back() = node.integer("N", 0);
  node.setShape(0, std::move(shape));
}

// ---- Einsum

/// "bij,bjk->bik", and in its short form.
void einsum(Node& node) {
  std::string equation = textOf(node.node(), "equation", "");
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos) return;
  std::map<char, OnnxExtent> extents;
  std::size_t input = 0, axis = 0;
  for (const char letter : equation.substr(0, arrow)) {
    if (letter == ',') {
      ++input;
      axis = 0;
      continue;
    }
    if (!node.rank(input) || axis >= *node.rank(input)) return;
    const OnnxExtent& extent = (*node.shape(input))[axis++];
    const auto [entry, isNew] = extents.emplace(letter, extent);
    if (!isNew) node.symbols().equate(entry->second, extent);
  }
  OnnxExtents shape;
  for (const char letter : equation.substr(arrow + 2)) {
    const auto found = extents.find(letter);
    if (found == extents.end()) return;
    shape.push_back(found->second);
  }
  node.setShape(0, std::move(shape));
}

}  // namespace

OnnxShapeRules productShapes() {
  return {
      {einsum, "Einsum"},
      {matMul, "FusedGemm FusedMatMul FusedMatMulActivation Gemm GemmFloat8 MatMul TransposeMatMul"},
      {floatIntegerMatMul, "DynamicQuantizeMatMul MatMulIntegerToFloat"},
      {matMulOfBits, "MatMulBnb4 MatMulNBits"},
  };
}

}  // namespace fuseline::onnx_shapes
