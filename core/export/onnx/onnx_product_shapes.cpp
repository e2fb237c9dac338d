// Shapes of products of matrices.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/einsum_terms.h"
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

using EinsumExtents = std::map<char, OnnxExtents>;  // '.' may stand for several

/// Notes the extents of an input. False: they are not known, or do not fit the term.
bool noteExtents(Node& node, std::size_t input, const std::string& term, EinsumExtents& extents) {
  const bool hasOthers = term.find('.') != std::string::npos;
  const std::size_t letters = term.size() - (hasOthers ? 1 : 0);
  if (!node.rank(input) || *node.rank(input) < letters || (!hasOthers && *node.rank(input) > letters)) return false;
  const OnnxExtents& shape = *node.shape(input);
  auto next = shape.begin();
  for (const char axis : term) {
    const auto end = next + (axis == '.' ? static_cast<std::ptrdiff_t>(shape.size() - letters) : 1);
    const OnnxExtents found(next, end);
    next = end;
    const auto [entry, isNew] = extents.emplace(axis, found);
    if (isNew) continue;
    if (axis == '.')
      entry->second = broadcastOf(entry->second, found, node.symbols());
    else
      node.symbols().equate(entry->second.front(), found.front());
  }
  return true;
}

void einsum(Node& node) {
  const auto terms = einsumTerms(textOf(node.node(), "equation", ""));
  if (!terms || terms->inputs.size() != node.numInputs()) return;
  EinsumExtents extents;
  for (std::size_t input = 0; input < terms->inputs.size(); ++input)
    if (!noteExtents(node, input, terms->inputs[input], extents)) return;
  OnnxExtents shape;
  for (const char axis : terms->output) {
    const auto found = extents.find(axis);
    if (found == extents.end()) return;
    shape.insert(shape.end(), found->second.begin(), found->second.end());
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
