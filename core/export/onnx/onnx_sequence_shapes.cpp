// Shapes of sequences of tokens: recurrent layers, attention, embeddings.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_shape_rules.h"

namespace fuseline::onnx_shapes {

namespace {

/// [S, B, input] to [S, directions, B, hidden], and the last states.
void recurrent(Node& node) {
  if (node.rank(0) != 3) return;
  const OnnxExtents& x = *node.shape(0);
  const bool isBatchFirst = node.integer("layout", 0) != 0;
  const OnnxExtent directions = textOf(node.node(), "direction", "forward") == "bidirectional" ? 2 : 1;
  const OnnxExtent hidden = node.integer("hidden_size", -1);
  const OnnxExtent batch = x[isBatchFirst ? 0 : 1], length = x[isBatchFirst ? 1 : 0];
  if (node.rank(1) == 3) node.symbols().equate(x[2], (*node.shape(1))[2]);
  node.setShape(0, isBatchFirst ? OnnxExtents{batch, length, directions, hidden}
                                : OnnxExtents{length, directions, batch, hidden});
  for (std::size_t output = 1; output < node.numOutputs(); ++output)
    node.setShape(output,
                  isBatchFirst ? OnnxExtents{batch, directions, hidden} : OnnxExtents{directions, batch, hidden});
}

// ---- attention

/// The value's features for each token of the query. [B, S, features], or [B, heads, S, size].
void attention(Node& node) {
  if (!node.rank(0) || node.rank(0) != node.rank(2)) return sameAsFirst(node);
  OnnxExtents shape = *node.shape(0);
  const OnnxExtents& value = *node.shape(2);
  if (shape.empty()) return;
  const std::int64_t heads = node.integer("q_num_heads", 0), shared = node.integer("kv_num_heads", heads);
  const bool isShared = shape.size() == 3 && heads > 0 && shared > 0;
  shape.back() = isShared ? node.symbols().quotient(value.back() * OnnxExtent(heads), shared) : value.back();
  node.setShape(0, std::move(shape));
}

/// query, key, value of ONNX Runtime; without the latter two the query has all three.
void multiHeadAttention(Node& node) {
  if (!node.rank(0)) return;
  if (*node.rank(0) == 3 && node.rank(2) == 3) return attention(node);
  OnnxExtents shape = *node.shape(0);
  if (shape.size() == 5) shape = {shape[0], shape[1], shape[2] * shape[4]};
  node.setShape(0, std::move(shape));
}

/// weights: [input, 3 * features].
void packedAttention(Node& node) {
  if (node.rank(0) != 3 || node.rank(1) != 2) return;
  OnnxExtents shape = *node.shape(0);
  const std::vector<std::int64_t> sizes = node.integers("qkv_hidden_sizes");
  shape.back() = sizes.size() == 3 ? OnnxExtent(sizes[2]) : node.symbols().quotient((*node.shape(1))[1], 3);
  node.setShape(0, std::move(shape));
}

/// Codes of x and the weights, and scales, of which that of x says the dtype of the result.
void quantizedAttention(Node& node) {
  node.setType(0, node.input(3).elementType);
  packedAttention(node);
}

/// Queries of H heads, packed with keys and values of fewer, or not.
void groupQueryAttention(Node& node) {
  if (node.rank(0) != 3) return;
  OnnxExtents shape = *node.shape(0);
  const std::int64_t heads = node.integer("num_heads", 0), shared = node.integer("kv_num_heads", 0);
  if (!node.has(1) && heads > 0)
    shape.back() = node.symbols().quotient(shape.back() * OnnxExtent(heads), heads + 2 * shared);
  node.setShape(0, std::move(shape));
}

/// ids of any rank, a table [words, bytes] of codes, and scales [words, blocks], from which rows of floats are made.
void gatherBlockQuantized(Node& node) {
  const std::int64_t bits = node.integer("bits", 4);
  if (!node.rank(0) || *node.rank(0) != 2 || !node.rank(1) || node.integer("gather_axis", 0) != 0 || bits < 1) return;
  node.setType(0, node.input(2).elementType);
  OnnxExtents shape = *node.shape(1);
  const bool isPacked = node.input(0).elementType == Tensor::UINT8;
  const OnnxExtent& columns = (*node.shape(0))[1];
  shape.push_back(isPacked ? columns * OnnxExtent(8 / bits) : columns);
  node.setShape(0, std::move(shape));
}

/// ids [B, S], a table [words, H].
void embedLayerNormalization(Node& node) {
  if (node.rank(0) != 2 || node.rank(2) != 2) return;
  OnnxExtents shape = *node.shape(0);
  node.setShape(1, OnnxExtents{shape[0]});
  node.setType(1, Tensor::INT32);
  shape.push_back((*node.shape(2))[1]);
  node.setShape(0, shape);
  node.setShape(2, std::move(shape));
  node.setType(0, node.input(2).elementType);
  node.setType(2, node.input(2).elementType);
}

}  // namespace

OnnxShapeRules sequenceShapes() {
  return {
      {attention, "Attention"},
      {embedLayerNormalization, "EmbedLayerNormalization"},
      {gatherBlockQuantized, "GatherBlockQuantized"},
      {groupQueryAttention, "GroupQueryAttention"},
      {multiHeadAttention, "MultiHeadAttention"},
      {packedAttention, "com.microsoft:Attention"},
      {quantizedAttention, "QAttention"},
      {recurrent, "GRU LSTM RNN"},
  };
}

}  // namespace fuseline::onnx_shapes
