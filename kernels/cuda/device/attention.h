// One row of scores: which keys it sees, and what becomes of a product of its query and a key.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/dropout.h"
#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/device/functions.h"
#include "kernels/cuda/device/sequences.h"

#include <cstdint>

namespace fuseline::cuda::device {

inline __device__ float minusInfinity() { return std::bit_cast<float>(0xff800000u); }

/// Slopes of ALiBi: powers of 2^(-8 / n), n the largest power of two up to the number of heads, then those in between.
inline __device__ float alibiSlope(std::int64_t head, std::int64_t heads) {
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  const auto n = static_cast<float>(power);
  if (head < power) return exp2f(-8.0f * static_cast<float>(head + 1) / n);
  return exp2f(-4.0f * static_cast<float>(2 * (head - power) + 1) / n);
}

/// Rules: ScoreRules; Pass: AttentionPass. row, unit: in the pass.
template <class Rules, class Pass>
class ScoreRow {
 public:
  __device__ ScoreRow(const Rules& rules, const Pass& pass, std::int64_t row, std::int64_t unit) : m_rules(rules) {
    m_entry = (pass.firstUnit + unit) / rules.groups;
    m_head = (pass.firstUnit + unit) % rules.groups * (rules.heads / rules.groups) + pass.headOfGroup;
    m_token = pass.firstRow + row;
    findSequence();
  }

  /// Whether the token is in a sequence.
  __device__ bool isInside() const { return m_isInside; }
  // Key tokens that it may see.
  __device__ std::int64_t first() const { return m_first; }
  __device__ std::int64_t last() const { return m_last; }
  __device__ std::int64_t head() const { return m_head; }

  /// In tensors [entries, heads, tokens].
  __device__ std::int64_t index() const { return (m_entry * m_rules.heads + m_head) * m_rules.queries + m_token; }
  /// Index of the log-sum-exp, which is [tokens, heads] of packed sequences.
  __device__ std::int64_t lseIndex() const { return m_rules.isPacked ? m_token * m_rules.heads + m_head : index(); }
  /// From there to the row's largest score; 0: it is not kept apart.
  __device__ std::int64_t largestOffset() const { return m_rules.largestOffset; }
  __device__ std::int64_t scoreIndex(const auto& tensor, std::int64_t key) const {
    return m_entry * tensor.batchStride + m_head * tensor.headStride + m_token * m_rules.keys + key;
  }

  __device__ bool sees(std::int64_t key) const {
    if (key < m_first || key >= m_last) return false;
    return !m_rules.mask.data ||
           static_cast<const std::int64_t*>(m_rules.mask.data)[scoreIndex(m_rules.mask, key)] == 0;
  }

  /// After scale, soft cap and bias.
  __device__ float score(std::int64_t key, float product) const {
    using Kind = decltype(m_rules.biasKind);
    const float limited = capped(key, product);
    if (m_rules.biasKind == Kind::PostScale) return limited + biasAt(key);
    if (m_rules.biasKind != Kind::Alibi) return limited;
    const std::int64_t distance = m_diagonal - (key - m_firstKey);
    return limited - m_slope * static_cast<float>(distance < 0 ? -distance : distance);
  }

  /// The slope of score() over the scaled product.
  __device__ float capSlope(std::int64_t key, float product) const {
    if (m_rules.softcap == 0.0f) return 1.0f;
    const float share = capped(key, product) / m_rules.softcap;
    return 1.0f - share * share;
  }

  /// Dropout factors of the probabilities of kVector keys from `key` on. Every rank has whole probabilities.
  template <int kVector>
  __device__ void keptShares(std::int64_t key, float (&out)[kVector]) const {
    if (!m_rules.hasDropout) return fill(1.0f, out);
    const auto begin = static_cast<std::uint64_t>(index() * m_rules.keys + key);
    if (kVector == 1 || begin % kDropoutBlock == 0)
      return dropWholeBlocks<kVector>(m_rules.dropout, m_rules.kept, begin, out);
    dropParts<kVector>(m_rules.dropout, m_rules.kept, begin, out);
  }

  /// Minus infinity: there is none.
  __device__ float sink() const {
    if (!m_rules.hasSink) return minusInfinity();
    return m_rules.sinks ? m_rules.sinks[m_head] : 0.0f;
  }

 private:
  __device__ void findSequence() {
    const bool isPacked = m_rules.isPacked;
    const std::int64_t sequence = isPacked ? sequenceOf(m_rules.sumsQ, m_rules.numSequences, m_token) : m_entry;
    m_isInside = sequence >= 0;
    if (!m_isInside) return;
    std::int64_t query = m_token;
    std::int64_t numQueries = m_rules.queries;
    std::int64_t numKeys = m_rules.keys;
    if (m_rules.sumsQ) {
      numQueries = m_rules.sumsQ[sequence + 1] - m_rules.sumsQ[sequence];
      numKeys = m_rules.sumsKv[sequence + 1] - m_rules.sumsKv[sequence];
    }
    if (isPacked) {
      query -= m_rules.sumsQ[sequence];
      m_firstKey = m_rules.sumsKv[sequence];
    }
    m_isInside = query < numQueries;
    if (m_isInside) findKeys(query, numQueries, numKeys);
  }

  /// As AttentionForm::keysOf.
  __device__ void findKeys(std::int64_t query, std::int64_t numQueries, std::int64_t numKeys) {
    m_diagonal = query + (m_rules.isBottomRight ? numKeys - numQueries : 0);
    const std::int64_t begin = m_rules.left < 0 ? 0 : m_diagonal - m_rules.left;
    const std::int64_t end = m_rules.right < 0 ? numKeys : m_diagonal + m_rules.right + 1;
    m_first = m_firstKey + (begin > 0 ? begin : 0);
    m_last = m_firstKey + (end < numKeys ? end : numKeys);
    if (m_last < m_first) m_last = m_first;
    if (m_rules.biasKind == decltype(m_rules.biasKind)::Alibi) m_slope = alibiSlope(m_head, m_rules.heads);
  }

  __device__ float biasAt(std::int64_t key) const {
    return loadElement(m_rules.biasElement, m_rules.bias.data, scoreIndex(m_rules.bias, key));
  }

  __device__ float capped(std::int64_t key, float product) const {
    if (m_rules.biasKind == decltype(m_rules.biasKind)::PreScale) product += biasAt(key);
    const float scaled = m_rules.scale * product;
    return m_rules.softcap == 0.0f ? scaled : m_rules.softcap * tanhf(scaled / m_rules.softcap);
  }

  const Rules& m_rules;
  std::int64_t m_entry = 0;
  std::int64_t m_head = 0;
  std::int64_t m_token = 0;
  bool m_isInside = false;
  std::int64_t m_firstKey = 0;  // of its sequence
  std::int64_t m_diagonal = 0;  // counted from there
  std::int64_t m_first = 0;
  std::int64_t m_last = 0;
  float m_slope = 0.0f;
};

/// The sum of exp(score) over a row and its sink, as it is kept for backward.
struct RowTotal {
  float logarithm = 0.0f;  // of the sum of exp(score - largest); -inf where the row has no key
  float largest = 0.0f;    // 0 where the logarithm is that of the whole sum

  __device__ float exponential(float score) const { return expf(score - largest - logarithm); }
  __device__ float probability(float score) const { return logarithm == minusInfinity() ? 0.0f : exponential(score); }
};

/// offset: from the row's logarithm to its largest score; 0: it is not kept apart.
inline __device__ RowTotal loadTotal(const float* from, std::int64_t offset) {
  return {*from, offset == 0 ? 0.0f : from[offset]};
}
inline __device__ void storeTotal(float* to, std::int64_t offset, const RowTotal& total) {
  *to = total.logarithm;
  if (offset != 0) to[offset] = total.largest;
}

/// The largest score and the sum of exp(score - largest) of some keys. Those of one score: the score and 1.
struct RunningSum {
  float largest = std::bit_cast<float>(0xff800000u);
  float sum = 0.0f;

  __device__ void add(const RunningSum& other) {
    const float next = maximum(largest, other.largest);
    if (next == minusInfinity()) return;
    sum = scaledTo(next) + other.scaledTo(next);
    largest = next;
  }
  __device__ float scaledTo(float next) const { return largest == minusInfinity() ? 0.0f : sum * expf(largest - next); }
  __device__ RowTotal total(bool isApart) const {
    if (largest == minusInfinity()) return {largest, 0.0f};
    return isApart ? RowTotal{logf(sum), largest} : RowTotal{largest + logf(sum), 0.0f};
  }
};

}  // namespace fuseline::cuda::device
