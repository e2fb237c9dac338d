// In pieces that importers know: MatMul, Mul, Add or Where, Softmax, MatMul, with heads in front of tokens; from opset
// 23 on as the ops Attention and RotaryEmbedding.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_attention_operation.h"

#include "core/ops/attention_form.h"
#include "core/ops/rotary_form.h"

#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Axes = std::vector<std::int64_t>;

/// The first opset with the ops Attention and RotaryEmbedding.
constexpr std::int64_t kOpsetOfAttention = 23;

Error withoutForm(const OnnxGraph& graph, const char* what, const char* next) {
  return Error{fmt::format("{}: {} cannot be expressed in ONNX {}. {}", graph.operation().id,
                           graph.operation().operation->name, what, next)};
}

class AttentionNodesOf {
 public:
  explicit AttentionNodesOf(OnnxGraph& graph)
      : m_graph(graph), m_form(attentionForm(graph.operation().attributes)), m_layouts(layouts()) {}

  void add() {
    if (fitsOperator()) return addOperator();
    const OnnxValue q = heads(AttentionForm::kQuery, m_layouts.q, "q");
    const OnnxValue k = repeated(heads(AttentionForm::kKey, m_layouts.k, "k"), m_layouts.k, "k");
    const OnnxValue v = repeated(heads(AttentionForm::kValue, m_layouts.v, "v"), m_layouts.v, "v");
    const OnnxValue kt = m_graph.add("Transpose", {k}, "k_transposed", {{"perm", Axes{0, 1, 3, 2}}});
    const OnnxValue p = probabilities(masked(biased(m_graph.add("MatMul", {q, kt}, "scores"))));
    merge(m_graph.add("MatMul", {p, v}, "weighted"));
  }

 private:
  /// Has ONNX an op for it? That has no sinks and no other bias than one that is added to the scaled scores, and limits
  /// scores after masking them.
  bool fitsOperator() const {
    return m_graph.opset() >= kOpsetOfAttention && !m_form.hasSink() && m_form.softcap == 0.0 &&
           (m_form.bias == AttentionBias::None || m_form.bias == AttentionBias::PostScale);
  }

  /// The mask causal is top left there, too.
  bool isCausalThere() const {
    return m_form.right == 0 && m_form.left < 0 && m_form.maskSlot < 0 && !m_form.hasBias() && !hasSequences() &&
           m_form.delta(numQueries(), numKeys()) == 0;
  }

  /// Keys and values keep their own number of heads.
  void addOperator() {
    std::vector<OnnxValue> inputs = {heads(AttentionForm::kQuery, m_layouts.q, "q"),
                                     heads(AttentionForm::kKey, m_layouts.k, "k"),
                                     heads(AttentionForm::kValue, m_layouts.v, "v")};
    const bool isCausal = isCausalThere();
    if (!isCausal)
      if (std::optional<OnnxValue> mask = maskOperand()) inputs.push_back(*mask);
    merge(m_graph.add("Attention", inputs, "weighted",
                      {{"scale", static_cast<float>(m_form.scale)}, {"is_causal", std::int64_t{isCausal ? 1 : 0}}}));
  }

  /// Pairs that count, or numbers that are added to the scores. Without rows and heads where it is the same for all.
  std::optional<OnnxValue> maskOperand() {
    const std::optional<OnnxValue> kept = keptPairs();
    if (!m_form.hasBias()) return kept;
    const OnnxValue bias = m_graph.cast(m_graph.input(m_form.biasSlot), DType::F32);
    if (!kept) return bias;
    const OnnxValue none = m_graph.number(-std::numeric_limits<double>::infinity());
    return OnnxValue{m_graph.add("Where", {*kept, bias, none}, "biased").name, DType::F32};
  }

  AttentionLayouts layouts() const {
    const Shape shapes[] = {m_graph.inputSpec(0).shape, m_graph.inputSpec(1).shape, m_graph.inputSpec(2).shape};
    return *attentionLayouts(m_form, shapes);  // the graph has inferred these shapes before
  }

  bool isSbhd() const { return m_form.format == QkvFormat::Sbhd; }
  bool isPacked() const { return m_form.format == QkvFormat::Thd; }
  bool hasSequences() const { return m_form.cuSeqlensQSlot >= 0; }
  std::int64_t numQueries() const { return m_layouts.q.tokens; }
  std::int64_t numKeys() const { return m_layouts.k.tokens; }

  /// [B, heads, S, channels] in float32.
  OnnxValue heads(int slot, const TokenLayout& layout, const char* part) {
    const Axes shape = isSbhd() ? Axes{layout.tokens, layout.batch, layout.heads, layout.channels}
                                : Axes{layout.batch, layout.tokens, layout.heads, layout.channels};
    const OnnxValue split = m_graph.reshape(m_graph.input(slot), m_graph.inputSpec(slot).shape, shape, part);
    const OnnxValue turned =
        m_graph.add("Transpose", {split}, part, {{"perm", isSbhd() ? Axes{1, 2, 0, 3} : Axes{0, 2, 1, 3}}});
    return m_graph.cast(turned, DType::F32);
  }

  /// A head of keys or values for each of the queries.
  OnnxValue repeated(const OnnxValue& x, const TokenLayout& layout, const char* part) {
    const std::int64_t each = m_form.headsPerGroup();
    if (each == 1) return x;
    const OnnxValue apart = m_graph.add("Unsqueeze", {x, m_graph.integers({2})}, part);
    const OnnxValue many = m_graph.add("Expand", {apart, m_graph.integers({1, 1, each, 1, 1})}, part);
    return m_graph.add("Reshape", {many, m_graph.integers({0, m_form.heads, -1, layout.channels})}, part);
  }

  OnnxValue times(const OnnxValue& x, double factor, const char* part) {
    return factor == 1.0 ? x : m_graph.add("Mul", {x, m_graph.number(factor)}, part);
  }

  OnnxValue biased(OnnxValue scores) {
    const auto addBias = [&] {
      const OnnxValue bias = m_graph.cast(m_graph.input(m_form.biasSlot), DType::F32);
      scores = m_graph.add("Add", {scores, bias}, "biased");
    };
    if (m_form.bias == AttentionBias::PreScale) addBias();
    scores = times(scores, m_form.softcap > 0.0 ? m_form.scale / m_form.softcap : m_form.scale, "scaled");
    if (m_form.softcap > 0.0) scores = times(m_graph.add("Tanh", {scores}, "capped"), m_form.softcap, "capped");
    if (m_form.bias == AttentionBias::PostScale) addBias();
    if (m_form.bias == AttentionBias::Alibi) scores = m_graph.add("Add", {scores, alibi()}, "biased");
    return scores;
  }

  /// [count, 1] or [1, count].
  OnnxValue counted(const OnnxValue& count, std::int64_t axis, const char* part) {
    const OnnxValue range = m_graph.add("Range", {m_graph.integer(0), count, m_graph.integer(1)}, part);
    return m_graph.add("Unsqueeze", {range, m_graph.integers({axis})}, part);
  }
  /// [Sq, 1], for any number of queries.
  OnnxValue queries() { return counted(tokensOf(AttentionForm::kQuery, numQueries()), 1, "queries"); }
  /// [1, Sk]
  OnnxValue keys() { return counted(tokensOf(AttentionForm::kKey, numKeys()), 0, "keys"); }
  OnnxValue tokensOf(int slot, std::int64_t count) {
    return m_graph.extent(slot, isSbhd() || isPacked() ? 0 : 1, count);
  }

  // ---- sequences, whose lengths are known at run time: prefix sums [B + 1]

  OnnxValue sumsFrom(int slot, std::int64_t first) {
    const std::int64_t count = numSequences(m_graph.inputSpec(slot));
    const OnnxValue range[] = {m_graph.integers({first}), m_graph.integers({first + count})};
    return m_graph.add("Slice", {m_graph.input(slot), range[0], range[1], m_graph.integers({0})}, "sums");
  }
  /// [B]
  OnnxValue lengths(int slot) { return m_graph.add("Sub", {sumsFrom(slot, 1), sumsFrom(slot, 0)}, "lengths"); }
  OnnxValue byEntry(const OnnxValue& x) {
    return m_graph.add("Reshape", {x, m_graph.integers({-1, 1, 1, 1})}, "by_entry");
  }

  /// thd: the sequence of each token, [T]: how many end before it. B: in none.
  OnnxValue sequenceOf(int slot, std::int64_t tokens) {
    const OnnxValue ends = m_graph.add("Unsqueeze", {sumsFrom(slot, 1), m_graph.integers({0})}, "ends");
    const OnnxValue before =
        m_graph.add("LessOrEqual", {ends, counted(m_graph.integer(tokens), 1, "tokens")}, "is_before");
    const OnnxValue count = m_graph.add("ReduceSum", {m_graph.castFromBool(before), m_graph.integers({1})}, "sequences",
                                        {{"keepdims", std::int64_t{0}}});
    return m_graph.cast(count, DType::I64);
  }
  /// thd: [T, 1] or [1, T]
  OnnxValue along(const OnnxValue& x, std::int64_t axis) {
    return m_graph.add("Unsqueeze", {x, m_graph.integers({axis})}, "along");
  }
  OnnxValue positionsIn(int slot, const OnnxValue& sequences, std::int64_t tokens, std::int64_t axis) {
    const OnnxValue starts = m_graph.add("Gather", {m_graph.input(slot), sequences}, "starts");
    return m_graph.add("Sub", {counted(m_graph.integer(tokens), axis, "tokens"), along(starts, axis)}, "positions");
  }

  /// Pairs of one sequence.
  OnnxValue pairsOfSequences() {
    if (!isPacked())
      return m_graph.add("And",
                         {m_graph.add("Less", {queries(), byEntry(lengths(m_form.cuSeqlensQSlot))}, "is_query"),
                          m_graph.add("Less", {keys(), byEntry(lengths(m_form.cuSeqlensKvSlot))}, "is_key")},
                         "is_token");
    const OnnxValue ofQueries = sequenceOf(m_form.cuSeqlensQSlot, numQueries());
    const OnnxValue ofKeys = sequenceOf(m_form.cuSeqlensKvSlot, numKeys());
    const OnnxValue count = m_graph.integer(numSequences(m_graph.inputSpec(m_form.cuSeqlensQSlot)));
    return m_graph.add("And",
                       {m_graph.add("Equal", {along(ofQueries, 1), along(ofKeys, 0)}, "is_same"),
                        along(m_graph.add("Less", {ofQueries, count}, "is_token"), 1)},
                       "is_pair");
  }

  /// [B]: how many keys more than queries.
  OnnxValue deltas() {
    return m_graph.add("Sub", {lengths(m_form.cuSeqlensKvSlot), lengths(m_form.cuSeqlensQSlot)}, "deltas");
  }

  /// The same as distance(), counted in each sequence.
  OnnxValue distanceInSequences() { return isPacked() ? distanceInPacked() : distanceInEntries(); }

  OnnxValue distanceInEntries() {
    const OnnxValue far = m_graph.add("Sub", {keys(), queries()}, "distance");
    return m_form.isBottomRight ? m_graph.add("Sub", {far, byEntry(deltas())}, "distance") : far;
  }

  OnnxValue distanceInPacked() {
    const int q = m_form.cuSeqlensQSlot, kv = m_form.cuSeqlensKvSlot;
    const OnnxValue ofQueries = sequenceOf(q, numQueries());
    const OnnxValue keys = positionsIn(kv, sequenceOf(kv, numKeys()), numKeys(), 0);
    const OnnxValue far = m_graph.add("Sub", {keys, positionsIn(q, ofQueries, numQueries(), 1)}, "distance");
    if (!m_form.isBottomRight) return far;
    const OnnxValue last = m_graph.integer(numSequences(m_graph.inputSpec(q)) - 1);
    const OnnxValue each = m_graph.add("Min", {ofQueries, last}, "sequences");
    return m_graph.add("Sub", {far, along(m_graph.add("Gather", {deltas(), each}, "deltas"), 1)}, "distance");
  }

  /// j - i - delta: how far a key is to the right of the diagonal.
  OnnxValue distance() {
    if (hasSequences()) return distanceInSequences();
    const OnnxValue difference = m_graph.add("Sub", {keys(), queries()}, "distance");
    const std::int64_t delta = m_form.delta(numQueries(), numKeys());
    return delta == 0 ? difference : m_graph.add("Sub", {difference, m_graph.integer(delta)}, "distance");
  }

  OnnxValue alibi() {
    std::vector<float> slopes;
    for (const double slope : alibiSlopes(m_form.heads)) slopes.push_back(static_cast<float>(-slope));
    const OnnxValue far = m_graph.add("Abs", {m_graph.cast(distance(), DType::F32)}, "far");
    return m_graph.add("Mul", {far, m_graph.numbers("slopes", {m_form.heads, 1, 1}, slopes)}, "alibi");
  }

  void keep(std::optional<OnnxValue>& kept, const OnnxValue& condition) {
    kept = kept ? m_graph.add("And", {*kept, condition}, "kept") : condition;
  }

  /// Which pairs count; nothing: all.
  std::optional<OnnxValue> keptPairs() {
    std::optional<OnnxValue> kept;
    if (hasSequences()) kept = pairsOfSequences();
    if (m_form.left >= 0 || m_form.right >= 0) {
      const OnnxValue far = distance();
      if (m_form.right >= 0)
        keep(kept, m_graph.add("LessOrEqual", {far, m_graph.integer(m_form.right)}, "is_not_right"));
      if (m_form.left >= 0)
        keep(kept, m_graph.add("GreaterOrEqual", {far, m_graph.integer(-m_form.left)}, "is_not_left"));
    }
    if (m_form.maskSlot >= 0)
      keep(kept, m_graph.add("Equal", {m_graph.input(m_form.maskSlot), m_graph.integer(0)}, "is_kept"));
    return kept;
  }

  OnnxValue masked(const OnnxValue& scores) {
    const std::optional<OnnxValue> kept = keptPairs();
    if (!kept) return scores;
    const OnnxValue none = m_graph.number(-std::numeric_limits<double>::infinity());
    const OnnxValue made = m_graph.add("Where", {*kept, scores, none}, "masked");
    return {made.name, DType::F32};
  }

  /// May a query see no key? A bias may be -inf for all.
  bool hasEmptyRows() const {
    if (m_form.maskSlot >= 0 || m_form.biasSlot >= 0 || hasSequences()) return true;
    for (const std::int64_t row : {std::int64_t{0}, numQueries() - 1}) {
      const KeyRange keys = m_form.keysOf(row, numQueries(), numKeys());
      if (keys.last <= keys.first) return true;
    }
    return false;
  }

  OnnxValue probabilities(const OnnxValue& scores) {
    const OnnxAttributes last = {{"axis", std::int64_t{-1}}};
    if (m_form.hasSink()) return withSink(scores);
    const OnnxValue p = m_graph.add("Softmax", {scores}, "probabilities", last);
    if (!hasEmptyRows()) return p;
    const OnnxValue made =
        m_graph.add("Where", {m_graph.add("IsNaN", {p}, "is_empty"), m_graph.number(0.0), p}, "guarded");
    return {made.name, DType::F32};
  }

  /// One more column, of which nothing is read.
  OnnxValue withSink(const OnnxValue& scores) {
    const bool isLearned = m_form.softmax == SoftmaxType::Learnable;
    const OnnxValue sink =
        isLearned ? m_graph.add("Reshape", {m_graph.parameter(), m_graph.integers({1, m_form.heads, 1, 1})}, "sink")
                  : m_graph.numbers("sink", {1, 1, 1, 1}, {0.0F});
    const OnnxValue extents = m_graph.add("Shape", {scores}, "extents");
    const OnnxValue rows = m_graph.add("Slice", {extents, m_graph.integers({0}), m_graph.integers({3})}, "rows");
    const OnnxValue shape = m_graph.add("Concat", {rows, m_graph.integers({1})}, "column", {{"axis", std::int64_t{0}}});
    const OnnxValue column = m_graph.add("Expand", {sink, shape}, "sinks");
    const OnnxValue all = m_graph.add("Concat", {scores, column}, "with_sink", {{"axis", std::int64_t{-1}}});
    const OnnxValue p = m_graph.add("Softmax", {all}, "probabilities", {{"axis", std::int64_t{-1}}});
    return m_graph.add("Slice", {p, m_graph.integers({0}), m_graph.integers({-1}), m_graph.integers({-1})},
                       "without_sink");
  }

  void merge(const OnnxValue& y) {
    const OnnxValue turned =
        m_graph.add("Transpose", {y}, "turned", {{"perm", isSbhd() ? Axes{2, 0, 1, 3} : Axes{0, 2, 1, 3}}});
    const TokenLayout &q = m_layouts.q, &v = m_layouts.v;
    const Shape shape =
        isSbhd() ? Shape{q.tokens, q.batch, q.heads, v.channels} : Shape{q.batch, q.tokens, q.heads, v.channels};
    m_graph.setOutput(0, m_graph.reshape(turned, shape, m_graph.outputSpec().shape, "merged"));
  }

  OnnxGraph& m_graph;
  AttentionForm m_form;
  AttentionLayouts m_layouts;
};

// ---- rotary embeddings

class RotaryNodesOf {
 public:
  RotaryNodesOf(OnnxGraph& graph, const TokenLayout& layout)
      : m_graph(graph), m_form(rotaryForm(graph.operation().attributes)), m_layout(layout) {}

  void add() {
    if (m_graph.opset() >= kOpsetOfAttention && m_form.rotated > 0) return addOperator();
    OnnxValue x = heads();
    std::optional<OnnxValue> rest;
    if (m_form.rotated < m_form.dim) {
      const std::vector<OnnxValue> parts = split(x, {m_form.rotated, m_form.dim - m_form.rotated}, "parts");
      x = parts[0];
      rest = parts[1];
    }
    const auto [cosines, sines] = tables();
    const OnnxValue across = m_graph.add("Mul", {turned(x), sines}, "across");
    OnnxValue y = m_graph.add("Add", {m_graph.add("Mul", {x, cosines}, "straight"), across}, "rotated");
    if (rest) y = m_graph.add("Concat", {y, *rest}, "whole", {{"axis", std::int64_t{-1}}});
    m_graph.setOutput(0, merged(y));
  }

 private:
  /// Heads in front of tokens, as the op wants them.
  void addOperator() {
    const OnnxAttributes swap = {{"perm", isSbhd() ? Axes{1, 2, 0, 3} : Axes{0, 2, 1, 3}}};
    const OnnxAttributes back = {{"perm", isSbhd() ? Axes{2, 0, 1, 3} : Axes{0, 2, 1, 3}}};
    const OnnxValue turned = m_graph.add("Transpose", {heads()}, "turned", swap);
    const OnnxValue positions = m_graph.add("Expand", {row(), rows()}, "rows");
    std::vector<float> frequencies;
    for (const double frequency : frequenciesOf()) frequencies.push_back(static_cast<float>(frequency));
    const auto [cosines, sines] = tablesOf(frequencies);
    const OnnxValue rotated =
        m_graph.add("RotaryEmbedding", {turned, cosines, sines, positions}, "rotated",
                    {{"interleaved", std::int64_t{m_form.isInterleaved ? 1 : 0}},
                     {"rotary_embedding_dim", m_form.rotated == m_form.dim ? 0 : m_form.rotated}});
    OnnxValue y = m_graph.add("Transpose", {rotated}, "whole", back);
    m_graph.setOutput(0, merged(y));
  }

  OnnxValue heads() {
    return m_graph.cast(m_graph.reshape(m_graph.input(), m_graph.inputSpec().shape, shapeWith(m_form.dim), "heads"),
                        DType::F32);
  }

  /// In the shape of the op's output.
  OnnxValue merged(const OnnxValue& y) {
    const Shape &from = shapeWith(m_form.dim), &to = m_graph.outputSpec().shape;
    return from == to ? y : m_graph.reshape(y, from, to, "merged");
  }

  /// [S], for any number of tokens.
  OnnxValue row() {
    const OnnxValue tokens = m_graph.extent(0, isSbhd() ? 0 : 1, m_layout.tokens);
    return m_graph.add("Range", {m_graph.integer(0), tokens, m_graph.integer(1)}, "positions");
  }

  /// B and S.
  OnnxValue rows() {
    const Shape& shape = m_graph.inputSpec().shape;
    const std::size_t ofBatch = isSbhd() ? 1 : 0;
    if (shape.size() < 2 || shape[ofBatch] != m_layout.batch || shape[1 - ofBatch] != m_layout.tokens)
      return m_graph.integers({m_layout.batch, m_layout.tokens});
    const OnnxValue extents = m_graph.add("Shape", {m_graph.input()}, "extents");
    const OnnxValue order = isSbhd() ? m_graph.integers({1, 0}) : m_graph.integers({0, 1});
    return {m_graph.add("Gather", {extents, order}, "rows").name, DType::I64};
  }

  std::vector<double> frequenciesOf() const {
    return rotaryFrequencies(m_graph.operation().attributes, rotaryLength(m_form, m_layout));
  }

  /// Cosines and sines of the angles of all positions, [S, frequencies].
  std::pair<OnnxValue, OnnxValue> tablesOf(const std::vector<float>& frequencies) {
    OnnxValue column = m_graph.cast(m_graph.add("Unsqueeze", {row(), m_graph.integers({1})}, "column"), DType::F32);
    if (m_form.offset != 0)
      column = m_graph.add("Add", {column, m_graph.number(static_cast<double>(m_form.offset))}, "column");
    const Shape shape = {1, static_cast<std::int64_t>(frequencies.size())};
    const OnnxValue angles = m_graph.add("Mul", {column, m_graph.numbers("frequencies", shape, frequencies)}, "angles");
    const double factor = rotaryAttentionFactor(m_graph.operation().attributes);
    const auto scaled = [&](const char* function, const char* part) {
      const OnnxValue values = m_graph.add(function, {angles}, part);
      return factor == 1.0 ? values : m_graph.add("Mul", {values, m_graph.number(factor)}, part);
    };
    return {scaled("Cos", "cosines"), scaled("Sin", "sines")};
  }

  bool isSbhd() const { return m_form.format == QkvFormat::Sbhd; }

  Axes shapeWith(std::int64_t channels) const {
    return isSbhd() ? Axes{m_layout.tokens, m_layout.batch, m_layout.heads, channels}
                    : Axes{m_layout.batch, m_layout.tokens, m_layout.heads, channels};
  }

  std::vector<OnnxValue> split(const OnnxValue& x, const Axes& sizes, const char* part) {
    return m_graph.addSeveral("Split", {x, m_graph.integers(sizes)}, sizes.size(), part, {{"axis", std::int64_t{-1}}});
  }

  /// The second of each pair, negative, in place of the first, and the first in place of the second.
  OnnxValue turned(const OnnxValue& x) {
    const OnnxAttributes last = {{"axis", std::int64_t{-1}}};
    if (!m_form.isInterleaved) {
      const std::vector<OnnxValue> halves = split(x, {m_form.numPairs(), m_form.numPairs()}, "halves");
      return m_graph.add("Concat", {m_graph.add("Neg", {halves[1]}, "minus"), halves[0]}, "turned", last);
    }
    const auto every = [&](std::int64_t first, const char* part) {
      return m_graph.add("Slice",
                         {x, m_graph.integers({first}), m_graph.integers({m_form.rotated}), m_graph.integers({-1}),
                          m_graph.integers({2})},
                         part);
    };
    const auto column = [&](const OnnxValue& half) {
      return m_graph.add("Unsqueeze", {half, m_graph.integers({-1})}, "column");
    };
    const OnnxValue minus = m_graph.add("Neg", {every(1, "second")}, "minus");
    const OnnxValue pairs = m_graph.add("Concat", {column(minus), column(every(0, "first"))}, "pairs", last);
    Axes apart = shapeWith(m_form.numPairs());
    apart.push_back(2);
    return m_graph.reshape(pairs, apart, shapeWith(m_form.rotated), "turned");
  }

  /// Cosines and sines of each channel, [S, 1, R] or [S, 1, 1, R].
  std::pair<OnnxValue, OnnxValue> tables() {
    const std::vector<double> ofPairs = frequenciesOf();
    std::vector<float> frequencies(static_cast<std::size_t>(m_form.rotated));
    for (std::int64_t m = 0; m < m_form.numPairs(); ++m)
      for (const std::int64_t channel : {m_form.firstOf(m), m_form.secondOf(m)})
        frequencies[static_cast<std::size_t>(channel)] = static_cast<float>(ofPairs[static_cast<std::size_t>(m)]);
    const auto [cosines, sines] = tablesOf(frequencies);
    const OnnxValue axes = isSbhd() ? m_graph.integers({1, 2}) : m_graph.integers({1});
    return {m_graph.add("Unsqueeze", {cosines, axes}, "cosines"), m_graph.add("Unsqueeze", {sines, axes}, "sines")};
  }

  OnnxGraph& m_graph;
  RotaryForm m_form;
  TokenLayout m_layout;
};

}  // namespace

void addOnnxAttention(OnnxGraph& graph) { AttentionNodesOf(graph).add(); }

Result<void> addOnnxRotaryEmbedding(OnnxGraph& graph) {
  const RotaryForm form = rotaryForm(graph.operation().attributes);
  if (form.cuSeqlensSlot >= 0 || form.startPositionsSlot >= 0)
    return withoutForm(graph, "with positions as inputs", "Set offset instead of start_positions.");
  const Result<TokenLayout> layout = rotaryLayout(form, graph.inputSpec().shape);
  if (!layout) return layout.error();
  RotaryNodesOf(graph, *layout).add();
  return {};
}

void addOnnxSplit(OnnxGraph& graph) {
  const std::vector<std::int64_t>& sizes = graph.operation().attributes.integers("sizes");
  const std::vector<OnnxValue> parts = graph.addSeveral("Split", {graph.input(), graph.integers(sizes)}, sizes.size(),
                                                        "parts", {{"axis", std::int64_t{-1}}});
  for (std::size_t slot = 0; slot < parts.size(); ++slot) graph.setOutput(static_cast<int>(slot), parts[slot]);
}

void addOnnxConcat(OnnxGraph& graph) {
  std::vector<OnnxValue> parts;
  for (std::size_t slot = 0; slot < graph.operation().inputs.size(); ++slot)
    parts.push_back(graph.input(static_cast<int>(slot)));
  graph.setOutput(0, graph.add("Concat", parts, "joined", {{"axis", std::int64_t{-1}}}));
}

}  // namespace fuseline
