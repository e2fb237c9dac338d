// DotProductAttention beside its definition: what its kernels, too, must know of its attributes and tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/random.h"
#include "core/ops/operation.h"
#include "core/ops/token_layout.h"
#include "core/tensor/element_format.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fuseline {

/// core_attention_bias_type. PreScale: added to q k^T before the softmax scale; PostScale: after it.
enum class AttentionBias { None, PreScale, PostScale, Alibi };
/// softmax_type. A sink adds exp(sink) to the sum of each row: 0 (OffByOne) or a parameter (Learnable).
enum class SoftmaxType { Vanilla, OffByOne, Learnable };

/// Keys [first, last) of a query row; empty where last <= first.
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Which tensors an attention has, and what it computes with them.
struct AttentionForm {
  static constexpr int kQuery = 0;  // slots of its inputs
  static constexpr int kKey = 1;
  static constexpr int kValue = 2;
  static constexpr int kOffset = 0;  // of its parameter
  static constexpr int kLse = 0;     // of its residual

  QkvFormat format = QkvFormat::Sbhd;
  AttentionBias bias = AttentionBias::None;
  SoftmaxType softmax = SoftmaxType::Vanilla;
  // Slots of its further inputs; -1: it has none.
  int biasSlot = -1;
  int maskSlot = -1;
  int cuSeqlensQSlot = -1;
  int cuSeqlensKvSlot = -1;
  /// Row i sees the keys i + delta - left to i + delta + right, both included; -1: all on that side. delta is the
  /// number of keys less that of queries of the sequence where the diagonal ends at the bottom right, else 0.
  std::int64_t left = -1;
  std::int64_t right = -1;
  bool isBottomRight = false;

  std::int64_t heads = 1;
  std::int64_t groups = 1;      // of heads that share keys and values
  std::int64_t qkChannels = 1;  // of a head of x and k
  std::int64_t vChannels = 1;   // of a head of v and y
  double scale = 1.0;
  double softcap = 0.0;  // 0: none
  double dropout = 0.0;
  DropoutMask dropoutMask;
  // FP8 attention: formats of the probabilities that multiply the values, and of the gradients of scores. Nothing: they
  // are not rounded. Backward rounds both or neither.
  std::optional<ElementFormat> probabilityFormat;
  std::optional<ElementFormat> scoreGradientFormat;

  bool hasSink() const { return softmax != SoftmaxType::Vanilla; }
  bool hasBias() const { return biasSlot >= 0; }
  double keptScale() const { return 1.0 / (1.0 - dropout); }
  std::int64_t headsPerGroup() const { return heads / groups; }
  std::int64_t delta(std::int64_t numQueries, std::int64_t numKeys) const {
    return isBottomRight ? numKeys - numQueries : 0;
  }
  /// Keys that row `query` of a sequence attends to, before an arbitrary mask.
  KeyRange keysOf(std::int64_t query, std::int64_t numQueries, std::int64_t numKeys) const;
};

/// Where the attribute `attention_dropout` says more than 0, the name of its mask; set when a graph is finished.
inline constexpr const char* kAttentionMaskName = "mask_name";

/// Names of formats, which the quantizers of a recipe add (core/quant/attention_quantizers.h).
inline constexpr const char* kProbabilityFormat = "probability_format";
inline constexpr const char* kScoreGradientFormat = "score_gradient_format";

/// Form for attributes that infer accepts; sizes that are not set count as 1.
AttentionForm attentionForm(const Attributes& attributes);

/// Positive slopes of ALiBi by head: its bias is -slope |i + delta - j|.
std::vector<double> alibiSlopes(std::int64_t heads);

/// How the tensors stand.
struct AttentionLayouts {
  TokenLayout q, k, v, y;
};

/// Errors: inputs whose shapes do not fit each other or the attributes, with both.
Result<AttentionLayouts> attentionLayouts(const AttentionForm& form, std::span<const Shape> inputs);

/// A tensor [1 or B, 1 or H, Sq, Sk] that is read for each sequence and head.
struct ScoreLayout {
  std::int64_t batchStride = 0;  // 0: the same for all
  std::int64_t headStride = 0;
  std::int64_t rowStride = 0;
};
ScoreLayout scoreLayout(const Shape& shape);

/// One sequence: rows of x and y, and of k and v, of one batch entry.
struct AttentionSequence {
  std::int64_t entry = 0;
  TokenSpan queries;
  TokenSpan keys;
};

/// cuSeqlens: empty where the attention has none. Errors: as sequencesOf(); other numbers of sequences for queries and
/// keys.
Result<std::vector<AttentionSequence>> attentionSequences(const AttentionForm& form, const AttentionLayouts& layouts,
                                                          std::span<const std::int64_t> cuSeqlensQ,
                                                          std::span<const std::int64_t> cuSeqlensKv);

/// The log-sum-exp of a query row: [B, H, S], or [T, H] in thd. With a bias [2, ..]: the logarithm of the sum of
/// exp(score - largest), then the largest score. Biases that mask may be so large that their sum would lose the
/// logarithm.
Shape lseShape(const AttentionForm& form, const TokenLayout& q);
std::int64_t lseIndex(const AttentionForm& form, const TokenLayout& q, std::int64_t entry, std::int64_t token,
                      std::int64_t head);
/// Elements from a row's log-sum-exp to its largest score. 0: it is not kept apart.
std::int64_t largestOffset(const AttentionForm& form, const TokenLayout& q);

/// The number of the probability of a query token and a key token among all that dropout may drop: of the first key
/// token of the batch entry. The next key token has the next number.
std::uint64_t dropoutIndex(const AttentionLayouts& layouts, std::int64_t entry, std::int64_t head, std::int64_t token);

/// Pairs of queries and keys that one head of a sequence computes, before an arbitrary mask.
std::int64_t numPairs(const AttentionForm& form, std::int64_t numQueries, std::int64_t numKeys);

}  // namespace fuseline
