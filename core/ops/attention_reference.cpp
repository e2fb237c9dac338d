// Rows of scores, forward and backward.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_reference.h"

#include "core/ops/reference_math.h"
#include "core/tensor/format_rounding.h"

#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

namespace fuseline {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

using InputOf = std::function<const ReferenceTensor&(int slot)>;

AttentionLayouts layoutsOf(const AttentionForm& form, const InputOf& input) {
  const Shape shapes[] = {input(AttentionForm::kQuery).shape, input(AttentionForm::kKey).shape,
                          input(AttentionForm::kValue).shape};
  Result<AttentionLayouts> layouts = attentionLayouts(form, shapes);
  assert(layouts);  // the graph has inferred these shapes before
  return std::move(*layouts);
}

std::vector<std::int64_t> countsOf(const InputOf& input, int slot) {
  if (slot < 0) return {};
  const std::vector<double>& values = input(slot).values;
  return {values.begin(), values.end()};
}

/// One query row: its head, sequence and token.
struct Row {
  const AttentionSequence& sequence;
  std::int64_t head = 0;
  std::int64_t query = 0;  // in its sequence

  std::int64_t token() const { return sequence.queries.first + query; }
};

/// Computation of scores, shared by forward and backward.
class Scores {
 public:
  Scores(const AttentionForm& attention, const InputOf& input)
      : form(attention),
        layouts(layoutsOf(attention, input)),
        q(input(AttentionForm::kQuery)),
        k(input(AttentionForm::kKey)),
        v(input(AttentionForm::kValue)),
        m_bias(attention.biasSlot < 0 ? nullptr : &input(attention.biasSlot)),
        m_mask(attention.maskSlot < 0 ? nullptr : &input(attention.maskSlot)),
        m_slopes(alibiSlopes(attention.heads)),
        m_sequences(sequences(input)) {}

  /// f(row) for every query of every sequence.
  template <class Function>
  void forEachRow(Function f) const {
    for (const AttentionSequence& sequence : m_sequences)
      for (std::int64_t head = 0; head < form.heads; ++head)
        for (std::int64_t query = 0; query < sequence.queries.size; ++query)
          f(Row{.sequence = sequence, .head = head, .query = query});
  }

  std::int64_t queryOffset(const Row& row) const { return layouts.q.offset(row.sequence.entry, row.token(), row.head); }
  std::int64_t outputOffset(const Row& row) const {
    return layouts.y.offset(row.sequence.entry, row.token(), row.head);
  }
  std::int64_t keyOffset(const Row& row, std::int64_t key) const { return offsetIn(layouts.k, row, key); }
  std::int64_t valueOffset(const Row& row, std::int64_t key) const { return offsetIn(layouts.v, row, key); }
  std::int64_t lse(const Row& row) const {
    return lseIndex(form, layouts.q, row.sequence.entry, row.token(), row.head);
  }
  std::int64_t largest(const Row& row) const { return lse(row) + largestOffset(form, layouts.q); }
  std::size_t biasIndex(const Row& row, std::int64_t key) const { return scoreIndex(m_bias->shape, row, key); }

  bool isKept(const Row& row, std::int64_t key) const {
    const KeyRange keys = form.keysOf(row.query, row.sequence.queries.size, row.sequence.keys.size);
    if (key < keys.first || key >= keys.last) return false;
    return !m_mask || m_mask->values[scoreIndex(m_mask->shape, row, key)] == 0.0;
  }

  /// f(key) for every key that the row sees.
  template <class Function>
  void forEachKey(const Row& row, Function f) const {
    for (std::int64_t key = 0; key < row.sequence.keys.size; ++key)
      if (isKept(row, key)) f(key);
  }

  /// After scale, soft cap and bias.
  double score(const Row& row, std::int64_t key) const { return capped(row, key) + addedAfter(row, key); }

  /// The slope of score() over q k^T scale.
  double capSlope(const Row& row, std::int64_t key) const {
    if (form.softcap == 0.0) return 1.0;
    const double share = capped(row, key) / form.softcap;
    return 1.0 - share * share;
  }

  /// Factor that dropout applies to a probability.
  double keptShare(const Row& row, std::int64_t key) const {
    if (form.dropout == 0.0) return 1.0;
    const std::uint64_t first = dropoutIndex(layouts, row.sequence.entry, row.head, row.token());
    const auto token = static_cast<std::uint64_t>(row.sequence.keys.first + key);
    return form.dropoutMask.keeps(first + token) ? form.keptScale() : 0.0;
  }

  const AttentionForm& form;
  const AttentionLayouts layouts;
  const ReferenceTensor& q;
  const ReferenceTensor& k;
  const ReferenceTensor& v;

 private:
  std::vector<AttentionSequence> sequences(const InputOf& input) const {
    Result<std::vector<AttentionSequence>> found =
        attentionSequences(form, layouts, countsOf(input, form.cuSeqlensQSlot), countsOf(input, form.cuSeqlensKvSlot));
    if (!found) throw std::invalid_argument(found.error().message);
    return std::move(*found);
  }

  std::int64_t offsetIn(const TokenLayout& layout, const Row& row, std::int64_t key) const {
    return layout.offset(row.sequence.entry, row.sequence.keys.first + key, row.head / form.headsPerGroup());
  }

  static std::size_t scoreIndex(const Shape& shape, const Row& row, std::int64_t key) {
    const ScoreLayout layout = scoreLayout(shape);
    return at(row.sequence.entry * layout.batchStride + row.head * layout.headStride + row.query * layout.rowStride +
              key);
  }

  double capped(const Row& row, std::int64_t key) const {
    double dot = 0.0;
    for (std::int64_t d = 0; d < form.qkChannels; ++d)
      dot += q.values[at(queryOffset(row) + d)] * k.values[at(keyOffset(row, key) + d)];
    if (form.bias == AttentionBias::PreScale) dot += m_bias->values[biasIndex(row, key)];
    const double scaled = form.scale * dot;
    return form.softcap == 0.0 ? scaled : form.softcap * std::tanh(scaled / form.softcap);
  }

  double addedAfter(const Row& row, std::int64_t key) const {
    if (form.bias == AttentionBias::PostScale) return m_bias->values[biasIndex(row, key)];
    if (form.bias != AttentionBias::Alibi) return 0.0;
    const auto distance = row.query + form.delta(row.sequence.queries.size, row.sequence.keys.size) - key;
    return -m_slopes[at(row.head)] * std::abs(static_cast<double>(distance));
  }

  const ReferenceTensor* m_bias;
  const ReferenceTensor* m_mask;
  std::vector<double> m_slopes;
  std::vector<AttentionSequence> m_sequences;
};

/// The sink of each head; empty where there is none.
std::vector<double> sinksOf(const AttentionForm& form, const std::function<const ReferenceTensor&()>& offset) {
  if (form.softmax == SoftmaxType::Learnable) return offset().values;
  return std::vector<double>(form.hasSink() ? at(form.heads) : 0, 0.0);
}

/// The sum of exp(score) over a row and its sink, as it is kept for backward.
struct RowTotal {
  double logarithm = -kInfinity;  // of the sum of exp(score - largest); -inf where there is neither a sink nor a key
  double largest = 0.0;           // 0 where the logarithm is that of the whole sum

  double exponential(double score) const { return std::exp(score - largest - logarithm); }
  double probability(double score) const { return logarithm == -kInfinity ? 0.0 : exponential(score); }
};

/// The scores of the keys that the row sees, in order.
std::vector<double> scoresOf(const Scores& scores, const Row& row) {
  std::vector<double> seen;
  scores.forEachKey(row, [&](std::int64_t key) { seen.push_back(scores.score(row, key)); });
  return seen;
}

/// NaN stays NaN. sinks: by head; empty: there are none
RowTotal totalOf(const AttentionForm& form, const Row& row, std::span<const double> scores,
                 const std::vector<double>& sinks) {
  const double sink = sinks.empty() ? -kInfinity : sinks[at(row.head)];
  double largest = sink;
  for (const double score : scores) largest = std::isnan(score) ? score : std::max(largest, score);
  if (largest == -kInfinity) return {};
  double sum = std::exp(sink - largest);
  for (const double score : scores) sum += std::exp(score - largest);
  if (form.hasBias()) return {.logarithm = std::log(sum), .largest = largest};
  return {.logarithm = largest + std::log(sum)};
}

/// The value in the format of an FP8 attention, with the scale of this amax.
double rounded(const std::optional<ElementFormat>& format, double value, double amax) {
  if (!format) return value;
  return roundedWithScale(*format, static_cast<float>(value), roundingScale(*format, static_cast<float>(amax)));
}

}  // namespace

ReferenceForward attentionForward(const AttentionForm& form, std::span<const ReferenceTensor> inputs,
                                  std::span<const ReferenceTensor> parameters) {
  const Scores scores(form, [&](int slot) -> const ReferenceTensor& { return inputs[at(slot)]; });
  const std::vector<double> sinks = sinksOf(form, [&]() -> const ReferenceTensor& { return parameters[0]; });
  Shape shape(inputs[0].shape.begin(), inputs[0].shape.begin() + (form.format == QkvFormat::Thd ? 1 : 2));
  shape.push_back(form.heads * form.vChannels);
  ReferenceTensor y = referenceZeros(std::move(shape));
  ReferenceTensor lse = referenceZeros(lseShape(form, scores.layouts.q));
  for (double& value : lse.values) value = -kInfinity;  // of tokens that no sequence has
  scores.forEachRow([&](const Row& row) {
    const std::vector<double> seen = scoresOf(scores, row);
    const RowTotal total = totalOf(form, row, seen, sinks);
    lse.values[at(scores.lse(row))] = total.logarithm;
    if (form.hasBias()) lse.values[at(scores.largest(row))] = total.largest;
    const auto out = std::span(y.values).subspan(at(scores.outputOffset(row)), at(form.vChannels));
    std::size_t index = 0;
    scores.forEachKey(row, [&](std::int64_t key) {
      const double share =
          rounded(form.probabilityFormat, total.probability(seen[index++]), 1.0) * scores.keptShare(row, key);
      for (std::size_t d = 0; d < out.size(); ++d)
        out[d] += share * scores.v.values[at(scores.valueOffset(row, key)) + d];
    });
  });
  return {.outputs = {std::move(y)}, .residuals = {std::move(lse)}};
}

namespace {

/// Gradients of one call.
class BackwardTask {
 public:
  BackwardTask(const AttentionForm& form, const SavedValues& saved, const ReferenceTensor& dy, std::size_t numInputs)
      : m_form(form),
        m_saved(saved),
        m_dy(dy),
        m_scores(form, [&](int slot) -> const ReferenceTensor& { return saved.input(slot); }),
        m_sinks(sinksOf(form, [&]() -> const ReferenceTensor& { return saved.parameter(AttentionForm::kOffset); })) {
    m_gradients.inputs.resize(numInputs);
    for (const int slot : {AttentionForm::kQuery, AttentionForm::kKey, AttentionForm::kValue, form.biasSlot})
      if (slot >= 0) m_gradients.inputs[at(slot)] = referenceZeros(saved.input(slot).shape);
    if (form.softmax == SoftmaxType::Learnable) m_gradients.parameters = {referenceZeros({form.heads})};
  }

  ReferenceBackward run() {
    if (m_form.scoreGradientFormat)
      forEachPair(
          [&](const Row&, std::int64_t, const Pair& pair) { m_amax = std::max(m_amax, std::abs(pair.scoreGradient)); });
    m_scores.forEachRow([&](const Row& row) { addOffset(row); });
    forEachPair([&](const Row& row, std::int64_t key, const Pair& pair) { addPair(row, key, pair); });
    return std::move(m_gradients);
  }

 private:
  std::vector<double>& gradient(int slot) { return m_gradients.inputs[at(slot)].values; }

  double dotWithGradient(const Row& row, const std::vector<double>& values, std::int64_t offset) const {
    double dot = 0.0;
    for (std::int64_t d = 0; d < m_form.vChannels; ++d)
      dot += m_dy.values[at(m_scores.outputOffset(row) + d)] * values[at(offset + d)];
    return dot;
  }

  /// A query and a key that it sees.
  struct Pair {
    double share = 0.0;  // with dropout
    double scoreGradient = 0.0;
  };

  /// With a bias it is computed again: scores that are so large in double precision are others in float32, as which the
  /// largest one is kept.
  RowTotal total(const Row& row) const {
    if (m_form.hasBias()) return totalOf(m_form, row, scoresOf(m_scores, row), m_sinks);
    return {.logarithm = m_saved.residual(AttentionForm::kLse).values[at(m_scores.lse(row))]};
  }
  double delta(const Row& row) const {
    return dotWithGradient(row, m_saved.output().values, m_scores.outputOffset(row));
  }

  /// f(row, key, pair), of what the softmax and its gradient give.
  template <class Function>
  void forEachPair(Function f) const {
    m_scores.forEachRow([&](const Row& row) {
      const RowTotal rowTotal = total(row);
      const double rowDelta = delta(row);
      m_scores.forEachKey(row, [&](std::int64_t key) {
        const double share = rowTotal.probability(m_scores.score(row, key));
        const double kept = m_scores.keptShare(row, key);
        const double dShare = kept * dotWithGradient(row, m_scores.v.values, m_scores.valueOffset(row, key));
        f(row, key, Pair{share * kept, share * (dShare - rowDelta)});
      });
    });
  }

  void addOffset(const Row& row) {
    if (m_form.softmax == SoftmaxType::Learnable)
      m_gradients.parameters[0].values[at(row.head)] -= total(row).exponential(m_sinks[at(row.head)]) * delta(row);
  }

  void addPair(const Row& row, std::int64_t key, const Pair& pair) {
    const double dScore = rounded(m_form.scoreGradientFormat, pair.scoreGradient, m_amax);
    const double share = m_form.scoreGradientFormat ? rounded(m_form.probabilityFormat, pair.share, 1.0) : pair.share;
    const double dProduct = m_form.scale * dScore * m_scores.capSlope(row, key);
    if (m_form.bias == AttentionBias::PreScale) gradient(m_form.biasSlot)[m_scores.biasIndex(row, key)] += dProduct;
    if (m_form.bias == AttentionBias::PostScale) gradient(m_form.biasSlot)[m_scores.biasIndex(row, key)] += dScore;
    for (std::int64_t d = 0; d < m_form.qkChannels; ++d) {
      const std::size_t q = at(m_scores.queryOffset(row) + d);
      const std::size_t k = at(m_scores.keyOffset(row, key) + d);
      gradient(AttentionForm::kQuery)[q] += dProduct * m_scores.k.values[k];
      gradient(AttentionForm::kKey)[k] += dProduct * m_scores.q.values[q];
    }
    for (std::int64_t d = 0; d < m_form.vChannels; ++d)
      gradient(AttentionForm::kValue)[at(m_scores.valueOffset(row, key) + d)] +=
          share * m_dy.values[at(m_scores.outputOffset(row) + d)];
  }

  const AttentionForm& m_form;
  const SavedValues& m_saved;
  const ReferenceTensor& m_dy;
  Scores m_scores;
  std::vector<double> m_sinks;
  double m_amax = 0.0;  // of the gradients of scores
  ReferenceBackward m_gradients;
};

}  // namespace

ReferenceBackward attentionBackward(const AttentionForm& form, const SavedValues& saved, const ReferenceTensor& dy,
                                    std::size_t numInputs) {
  return BackwardTask(form, saved, dy, numInputs).run();
}

}  // namespace fuseline
