// Launches of what attention does between its products. Plain C++: the kernels stand in attention_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>

namespace fuseline::cuda {

/// Numbered as core's AttentionBias.
enum class ScoreBias : std::uint8_t { None, PreScale, PostScale, Alibi };

/// [1 or B, 1 or H, queries, keys]; strides in elements, 0: the same for all.
struct ScoreTensor {
  const void* data = nullptr;  // null: there is none
  std::int64_t batchStride = 0;
  std::int64_t headStride = 0;
};

/// Which scores of an attention count, and what they are besides products of queries and keys.
struct ScoreRules {
  std::int64_t queries = 0;  // tokens of a batch entry
  std::int64_t keys = 0;
  std::int64_t heads = 1;
  std::int64_t groups = 1;  // of heads that share keys
  // Sequences; sums are null where each batch entry is one. Packed: there is one batch entry of all sequences.
  bool isPacked = false;
  std::int64_t numSequences = 0;
  const std::int64_t* sumsQ = nullptr;
  const std::int64_t* sumsKv = nullptr;
  // As in AttentionForm.
  std::int64_t left = -1;
  std::int64_t right = -1;
  bool isBottomRight = false;
  ScoreBias biasKind = ScoreBias::None;
  device::Element biasElement = device::Element::F32;
  ScoreTensor bias;
  ScoreTensor mask;                // i64; other than 0: the pair does not count
  std::int64_t largestOffset = 0;  // as fuseline::largestOffset() says
  float scale = 1.0F;
  float softcap = 0.0F;  // 0: none
  bool hasDropout = false;
  device::Dropout dropout;
  float kept = 1.0F;  // what dropout multiplies the others by
  // exp(sink) is added to the sums of rows: of each head, or 0 for all; null and false: there is none.
  const float* sinks = nullptr;
  bool hasSink = false;
};

/// Units are pairs of a batch entry and a group: entry * groups + group. A pass has one head of several units, and some
/// query tokens of their entry. Matrices of it: [units, rows, keys].
struct AttentionPass {
  std::int64_t firstUnit = 0;
  std::int64_t units = 1;
  std::int64_t headOfGroup = 0;
  std::int64_t firstRow = 0;
  std::int64_t rows = 0;
};

/// Softmax of the rows of a pass.
struct AttentionSoftmax {
  ScoreRules rules;
  AttentionPass pass;
  device::Element element = device::Element::F32;  // of the probabilities
  const float* products = nullptr;                 // of queries and keys
  void* probabilities = nullptr;                   // after dropout; may be `products`, where they are float32
  float* lse = nullptr;                            // of the whole attention; null: not wanted
};
void launchAttentionSoftmax(const AttentionSoftmax& softmax, Stream stream);

/// The same computed again, and the gradient of the products.
struct AttentionGradient {
  ScoreRules rules;
  AttentionPass pass;
  device::Element element = device::Element::F32;
  const float* products = nullptr;
  const float* gradProbabilities = nullptr;
  const float* lse = nullptr;
  const float* deltas = nullptr;  // as launchAttentionDeltas writes them
  void* probabilities = nullptr;  // may be `products`, where they are float32
  void* gradProducts = nullptr;   // may be `gradProbabilities`, where they are float32
  float* gradBias = nullptr;      // float32 in the shape of the bias, to be added to; null: not wanted
};
/// First gradBias, from what the other results may overwrite.
void launchAttentionGradient(const AttentionGradient& gradient, Stream stream);

/// A product of scores with keys or values multiplies pairs that are masked by 0, but 0 times NaN or infinity is NaN.
/// Elements of the result that are not finite are summed again, over the keys that their row sees.
struct MaskedProduct {
  ScoreRules rules;
  AttentionPass pass;
  device::Element element = device::Element::F32;  // of all three
  const void* scores = nullptr;                    // [units, rows, keys]
  const void* right = nullptr;                     // heads of keys
  void* result = nullptr;                          // heads of queries
  std::int64_t channels = 1;
  std::int64_t rightBatchStride = 0;
  std::int64_t rightTokenStride = 0;
  std::int64_t rightHeadStride = 0;
  std::int64_t resultBatchStride = 0;
  std::int64_t resultTokenStride = 0;
  std::int64_t resultHeadStride = 0;
};
/// Launches nothing if nothing is masked.
void launchMaskedProduct(const MaskedProduct& product, Stream stream);

/// Sums of dy y over the channels of each row of a head: [entries, heads, tokens].
struct AttentionDeltas {
  device::Element element = device::Element::F32;
  const void* y = nullptr;
  const void* dy = nullptr;
  float* deltas = nullptr;
  std::int64_t entries = 1;
  std::int64_t tokens = 0;
  std::int64_t heads = 1;
  std::int64_t channels = 1;  // of a head
  // y and dy.
  std::int64_t batchStride = 0;
  std::int64_t tokenStride = 0;
  std::int64_t headStride = 0;
  std::int64_t gradBatchStride = 0;
  std::int64_t gradTokenStride = 0;
  std::int64_t gradHeadStride = 0;
};
void launchAttentionDeltas(const AttentionDeltas& deltas, Stream stream);

/// gradients[h] = -sum of exp(sink - lse) delta. [heads]
void launchSinkGradient(const ScoreRules& rules, std::int64_t entries, const float* lse, const float* deltas,
                        float* gradients, Stream stream);

/// Float32 sums [units, tokens, channels] to where the heads of a tensor stand.
struct HeadRows {
  const float* from = nullptr;  // null: zeros are written
  device::Element element = device::Element::F32;
  void* to = nullptr;
  std::int64_t firstUnit = 0;
  std::int64_t units = 1;
  std::int64_t groups = 1;
  std::int64_t tokens = 0;
  std::int64_t channels = 1;
  std::int64_t batchStride = 0;
  std::int64_t tokenStride = 0;
  std::int64_t headStride = 0;
};
void launchHeadRows(const HeadRows& rows, Stream stream);

}  // namespace fuseline::cuda
