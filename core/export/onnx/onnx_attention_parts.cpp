// Looks from the product with the values back to the softmax and the product of queries and keys.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_attention_parts.h"

#include "core/export/onnx/onnx_pattern_parts.h"

#include <algorithm>
#include <cmath>

namespace fuseline {

namespace {

constexpr int kLongestChain = 24;
struct Scores {
  std::string q, k, product;
  double scale = 1.0;
  double innerScale = 1.0;  // before the hyperbolic tangent
  bool isCapped = false;
  std::vector<ScoreStep> steps = {};
};

class AttentionSearch {
 public:
  AttentionSearch(const OnnxReading& reading, OnnxViews& views, OnnxNumbers& numbers)
      : m_reading(reading), m_views(views), m_numbers(numbers) {}

  /// product: of probabilities and values.
  std::optional<AttentionParts> inPieces(const ::onnx::NodeProto& product) {
    const auto* const slice = withoutLastColumn(inputOf(product, 0));
    const std::string logits = logitsOf(slice ? inputOf(*slice, 0) : inputOf(product, 0), 0);
    if (logits.empty()) return std::nullopt;
    const auto* const joined = slice ? joinedWithSinks(logits) : nullptr;
    if (slice && !joined) return std::nullopt;
    std::optional<Scores> scores = scoresAt(joined ? inputOf(*joined, 0) : logits, 0);
    if (!scores) return std::nullopt;
    const auto made = m_views.extents(scores->product);
    const Shape* const repeats = made ? &*made : nullptr;
    const auto q = operand(scores->q, false, true, repeats), k = operand(scores->k, true, true, repeats),
               v = operand(inputOf(product, 1), false, true, repeats);
    if (!q || !k || !v) return std::nullopt;
    AttentionParts parts{.q = *q, .k = *k, .v = *v};
    const double factor = q->view.factor * k->view.factor;
    parts.scale = scores->scale * factor;
    if (scores->isCapped) {
      parts.softcap = scores->scale;
      parts.scale = scores->scale * scores->innerScale * factor;
    }
    parts.steps = std::move(scores->steps);
    if (joined) parts.sinks = sinksOf(*joined);
    parts.scores = scores->product;
    parts.output = product.output(0);
    return parts.v.view.factor == 1.0 ? std::optional(std::move(parts)) : std::nullopt;
  }

  /// The op of opset 23, without keys of earlier calls.
  std::optional<AttentionParts> whole(const ::onnx::NodeProto& node) {
    const bool isOnly =
        std::all_of(node.output().begin() + 1, node.output().end(), [](const auto& name) { return name.empty(); });
    const bool hasPast = !inputOf(node, 4).empty() || !inputOf(node, 5).empty() || !inputOf(node, 6).empty();
    if (!isOnly || hasPast || integerOf(node, "qk_matmul_output_mode", 0) != 0) return std::nullopt;
    const auto shape = m_views.extents(inputOf(node, 0));
    const bool isMerged = shape && shape->size() == 3;
    const std::int64_t H = integerOf(node, "q_num_heads", 0), G = integerOf(node, "kv_num_heads", H);
    const auto at = [&](int input, std::int64_t heads) {
      return isMerged ? mergedOperand(inputOf(node, input), heads) : operand(inputOf(node, input), false, false);
    };
    const auto q = at(0, H), k = at(1, G), v = at(2, G);
    if (!q || !k || !v) return std::nullopt;
    AttentionParts parts{.q = *q, .k = *k, .v = *v, .output = node.output(0), .isMerged = isMerged};
    if (!repeatHeads(parts)) return std::nullopt;
    parts.scale = realOf(node, "scale", 1.0 / std::sqrt(static_cast<double>(extentOf(q->channels()))));
    parts.softcap = realOf(node, "softcap", 0.0);
    if (const std::string& mask = inputOf(node, 3); !mask.empty()) parts.steps.push_back(maskStep(mask));
    setMask(node, parts);
    return parts;
  }

  /// com.microsoft MultiHeadAttention: tensors [B, S, H * D] without caches, and without biases and key masks, which
  /// were taken out before.
  std::optional<AttentionParts> multiHead(const ::onnx::NodeProto& node) {
    const std::int64_t H = integerOf(node, "num_heads", 0);
    for (const int other : {3, 4, 6, 7, 8, 9})
      if (!inputOf(node, other).empty()) return std::nullopt;
    if (givesMore(node)) return std::nullopt;
    const std::string &x = inputOf(node, 0), &keys = inputOf(node, 1), &values = inputOf(node, 2);
    const bool isPacked = keys.empty() && values.empty(), hasPackedKeys = !keys.empty() && values.empty();
    const auto ofHeads = [&](const std::string& tensor) {  // [B, Sk, H * D], or [B, H, Sk, D] of another sequence
      const auto shape = m_views.extents(tensor);
      return shape && shape->size() == 4 ? operand(tensor, false, false) : mergedOperand(tensor, H);
    };
    const auto q = isPacked ? packedOperand(x, 0, 3) : mergedOperand(x, H),
               k = isPacked        ? packedOperand(x, 1, 3)
                   : hasPackedKeys ? packedOperand(keys, 0, 2)
                                   : ofHeads(keys),
               v = isPacked        ? packedOperand(x, 2, 3)
                   : hasPackedKeys ? packedOperand(keys, 1, 2)
                                   : ofHeads(values);
    if (!q || !k || !v) return std::nullopt;
    AttentionParts parts{.q = *q, .k = *k, .v = *v, .output = node.output(0), .isMerged = true};
    const bool isCausal = integerOf(node, "unidirectional", 0) != 0;
    if (isCausal && extentOf(q->tokens()) != extentOf(k->tokens())) return std::nullopt;
    parts.scale = scaleOf(node, *q);
    parts.attributes["attn_mask_type"] = isCausal ? "causal" : "no_mask";
    if (const std::string& bias = inputOf(node, 5); !bias.empty()) parts.steps.push_back({.tensor = bias});
    return parts;
  }

  /// com.microsoft GroupQueryAttention as for a prompt: all sequences have full length, and no cache exists yet.
  std::optional<AttentionParts> grouped(const ::onnx::NodeProto& node) {
    const std::int64_t H = integerOf(node, "num_heads", 0), G = integerOf(node, "kv_num_heads", 0);
    for (const int other : {3, 4, 7, 8, 12, 13})
      if (!inputOf(node, other).empty()) return std::nullopt;
    if (integerOf(node, "do_rotary", 0) != 0 || H <= 0 || G <= 0 || H % G != 0 || givesMore(node)) return std::nullopt;
    const std::string& x = inputOf(node, 0);
    const bool isPacked = inputOf(node, 1).empty();
    const auto shape = m_views.extents(x);
    if (!shape || shape->size() != 3) return std::nullopt;
    const std::int64_t D = shape->back() / (isPacked ? H + 2 * G : H);
    const auto q = isPacked ? mergedOperand(x, H, 0, D) : mergedOperand(x, H);
    const auto k = isPacked ? mergedOperand(x, G, H * D, D) : mergedOperand(inputOf(node, 1), G);
    const auto v = isPacked ? mergedOperand(x, G, (H + G) * D, D) : mergedOperand(inputOf(node, 2), G);
    const std::optional<bool> isWhole = hasWholeLengths(node);
    if (!q || !k || !v || isWhole == false) return std::nullopt;
    AttentionParts parts{.q = *q, .k = *k, .v = *v, .output = node.output(0), .isMerged = true};
    if (!isWhole)
      parts.note = "all sequences have the full length here; rows after the end of a shorter sequence differ.";
    if (!repeatHeads(parts)) return std::nullopt;
    parts.scale = scaleOf(node, *q);
    parts.softcap = realOf(node, "softcap", 0.0);
    parts.attributes["attn_mask_type"] = "causal";
    if (const std::int64_t W = integerOf(node, "local_window_size", -1); W > 0)
      parts.attributes["window_size"] = {W - 1, 0};
    if (const std::string& bias = inputOf(node, 10); !bias.empty()) parts.steps.push_back({.tensor = bias});
    return setSinks(node, parts) ? std::optional(std::move(parts)) : std::nullopt;
  }

 private:
  // ---- operands

  /// [.., S, D], or keys as [.., D, S].
  /// made: the extents of the product, to whose leading axes the operand is repeated.
  std::optional<AttentionOperand> operand(const std::string& tensor, bool isTurned, bool isScaled = true,
                                          const Shape* made = nullptr) {
    if (m_reading.constant(tensor)) return std::nullopt;
    auto view = isScaled ? m_views.ofScaled(tensor) : m_views.of(tensor);
    if (!view || view->axes.size() < 2) return std::nullopt;
    if (made && made->size() >= view->axes.size()) repeat(*view, *made);
    ViewFactors lead;
    for (std::size_t i = 0; i + 2 < view->axes.size(); ++i)
      lead.insert(lead.end(), view->axes[i].begin(), view->axes[i].end());
    ViewFactors tokens = view->axes[view->axes.size() - 2], channels = view->axes.back();
    if (isTurned) std::swap(tokens, channels);
    view->axes = {std::move(lead), std::move(tokens), std::move(channels)};
    return AttentionOperand{std::move(*view)};
  }

  static void repeat(OnnxView& view, const Shape& made) {
    view.axes.insert(view.axes.begin(), made.size() - view.axes.size(), ViewFactors());
    for (std::size_t i = 0; i + 2 < made.size(); ++i)
      if (extentOf(view.axes[i]) == 1 && made[i] != 1) view.axes[i] = {{made[i], 0}};
  }

  /// [B, S, H * D], or of columns from `first` on.
  std::optional<AttentionOperand> mergedOperand(const std::string& tensor, std::int64_t heads, std::int64_t first = 0,
                                                std::int64_t channels = 0) {
    const auto shape = m_views.extents(tensor);
    auto view = m_views.of(tensor);
    if (!shape || shape->size() != 3 || !view || heads <= 0) return std::nullopt;
    if (channels == 0 && shape->back() % heads != 0) return std::nullopt;
    if (channels == 0) channels = shape->back() / heads;
    if (channels == 0 || shape->back() % channels != 0) return std::nullopt;
    const auto columns = regrouped(view->axes[2], {shape->back() / channels, channels});
    if (!columns) return std::nullopt;
    ViewFactors rows = (*columns)[0];
    if (heads * channels < shape->back()) {
      if (rows.size() != 1) return std::nullopt;
      view->offset += first / channels * rows.front().stride;
      rows.front().extent = heads;
      if (heads == 1) rows.clear();
    }
    ViewFactors lead = view->axes[0];
    lead.insert(lead.end(), rows.begin(), rows.end());
    view->axes = {std::move(lead), view->axes[1], (*columns)[1]};
    return AttentionOperand{std::move(*view)};
  }

  /// [B, S, H, parts, D], the part of this number.
  std::optional<AttentionOperand> packedOperand(const std::string& tensor, std::int64_t part, std::int64_t parts) {
    auto view = m_views.of(tensor);
    if (!view || view->axes.size() != 5 || extentOf(view->axes[3]) != parts || view->axes[3].size() != 1)
      return std::nullopt;
    view->offset += part * view->axes[3].front().stride;
    ViewFactors lead = view->axes[0];
    lead.insert(lead.end(), view->axes[2].begin(), view->axes[2].end());
    view->axes = {std::move(lead), view->axes[1], view->axes[4]};
    return AttentionOperand{std::move(*view)};
  }

  /// Does anything read its further outputs, such as the keys for a later call?
  bool givesMore(const ::onnx::NodeProto& node) const {
    return std::any_of(node.output().begin() + 1, node.output().end(),
                       [&](const std::string& output) { return !output.empty() && m_reading.numReaders(output) > 0; });
  }

  /// Fewer heads of keys and values than of queries are each read by several.
  static bool repeatHeads(AttentionParts& parts) {
    const std::int64_t all = extentOf(parts.q.lead());
    for (AttentionOperand* const operand : {&parts.k, &parts.v}) {
      const std::int64_t own = extentOf(operand->lead());
      if (own <= 0 || all % own != 0) return false;
      if (own != all) operand->view.axes[0].push_back({all / own, 0});
    }
    return true;
  }

  /// Those of GroupQueryAttention. False: a run computes them.
  bool setSinks(const ::onnx::NodeProto& node, AttentionParts& parts) {
    if (integerOf(node, "smooth_softmax", 0) > 0) parts.attributes["softmax_type"] = "off-by-one";
    const std::string& sinks = inputOf(node, 11);
    if (sinks.empty()) return true;
    const auto numbers = m_numbers.of(sinks);
    if (numbers) parts.sinks = numbers->values;
    return numbers != nullptr;
  }

  double scaleOf(const ::onnx::NodeProto& node, const AttentionOperand& q) const {
    const double scale = realOf(node, "scale", 0.0);
    return scale != 0.0 ? scale : 1.0 / std::sqrt(static_cast<double>(extentOf(q.channels())));
  }

  ScoreStep maskStep(const std::string& mask) const {
    const bool isFloat = floatTypeOf(m_reading.elementType(mask)).has_value();
    return isFloat ? ScoreStep{.tensor = mask}
                   : ScoreStep{.kind = ScoreStep::Kind::Mask, .tensor = mask, .fill = -INFINITY};
  }

  static void setMask(const ::onnx::NodeProto& node, AttentionParts& parts) {
    const bool isCausal = integerOf(node, "is_causal", 0) != 0;
    parts.attributes["attn_mask_type"] = isCausal ? "causal" : "no_mask";
    const std::int64_t left = integerOf(node, "left_window_size", -1);
    const std::int64_t right = isCausal ? 0 : integerOf(node, "right_window_size", -1);
    if (left < 0 && (isCausal || right < 0)) return;
    const auto all = [](std::int64_t side) { return side < 0 ? kAllKeys : side; };
    parts.attributes["window_size"] = isCausal ? Json{left, 0} : Json{all(left), all(right)};
    if (!isCausal) parts.attributes["bottom_right_diagonal"] = false;
  }

  /// seqlens_k are the lengths less one. Nothing: only a run knows them.
  std::optional<bool> hasWholeLengths(const ::onnx::NodeProto& node) {
    const auto lengths = m_numbers.of(inputOf(node, 5));
    const auto shape = m_numbers.extents(inputOf(node, 0));
    if (!shape || shape->size() != 3) return false;
    if (!lengths) return std::nullopt;
    return std::ranges::all_of(lengths->values,
                               [&](double last) { return last + 1.0 == static_cast<double>((*shape)[1]); });
  }

  // ---- sinks: scores of a column that no value belongs to

  /// The node that leaves it out behind the softmax.
  const ::onnx::NodeProto* withoutLastColumn(const std::string& tensor) const {
    const auto* const slice = m_reading.makerOf("Slice", tensor);
    const auto before = slice ? m_views.extents(inputOf(*slice, 0)) : std::nullopt, after = m_views.extents(tensor);
    if (!before || !after || before->empty() || before->size() != after->size()) return nullptr;
    const bool isRest = std::equal(before->begin(), before->end() - 1, after->begin());
    const auto starts = m_reading.integers(inputOf(*slice, 1)), ends = m_reading.integers(inputOf(*slice, 2));
    const bool isFirst = starts && ends && *starts == Shape{0} && ends->size() == 1;
    return isRest && isFirst && (ends->front() == -1 || after->back() + 1 == before->back()) ? slice : nullptr;
  }

  /// The Concat of scores and sinks that a softmax reads.
  const ::onnx::NodeProto* joinedWithSinks(const std::string& tensor) const {
    const auto* const concat = m_reading.makerOf("Concat", tensor);
    const bool isOfTwo = concat && concat->input_size() == 2 &&
                         m_reading.axisFromEnd(concat->output(0), integerOf(*concat, "axis", 0)) == -1;
    return isOfTwo && !sinksOf(*concat).empty() ? concat : nullptr;
  }

  /// Sinks in [batch, heads, queries, 1] that are alike for all but heads. Empty: a run computes them.
  std::vector<double> sinksOf(const ::onnx::NodeProto& concat) const {
    const auto numbers = m_numbers.of(inputOf(concat, 1));
    if (!numbers || numbers->shape.size() != 4 || numbers->shape[3] != 1 || numbers->values.empty()) return {};
    const std::int64_t heads = numbers->shape[1], rows = numbers->shape[2];
    std::vector<double> sinks;
    for (std::int64_t head = 0; head < heads; ++head)
      sinks.push_back(numbers->values[static_cast<std::size_t>(head * rows)]);
    for (std::size_t i = 0; i < numbers->values.size(); ++i)
      if (numbers->values[i] != sinks[i / static_cast<std::size_t>(rows) % sinks.size()]) return {};
    return sinks;
  }

  // ---- from probabilities to scores

  bool isLastAxis(const ::onnx::NodeProto& softmax) const {
    return m_reading.axisFromEnd(inputOf(softmax, 0), integerOf(softmax, "axis", -1)) == -1;
  }

  /// The last two extents stay.
  bool keepsScores(const ::onnx::NodeProto& node) const {
    const auto from = m_views.extents(inputOf(node, 0)), to = m_views.extents(node.output(0));
    return from && to && from->size() >= 2 && to->size() >= 2 &&
           std::equal(from->end() - 2, from->end(), to->end() - 2);
  }

  static bool isReshape(const ::onnx::NodeProto& node) {
    return node.domain().empty() &&
           (node.op_type() == "Reshape" || node.op_type() == "Unsqueeze" || node.op_type() == "Squeeze");
  }

  /// Input of a softmax over the last axis, a node or written out. Empty: the tensor is no softmax.
  std::string logitsOf(const std::string& tensor, int depth) const {
    const auto* const node = m_reading.maker(tensor);
    if (!node || depth > kLongestChain || !node->domain().empty()) return {};
    if (node->op_type() == "Softmax") return isLastAxis(*node) ? withoutLargest(inputOf(*node, 0)) : "";
    if (node->op_type() == "Div") return exponentsOfShares(*node);
    if (isReshape(*node)) return keepsScores(*node) ? logitsOf(inputOf(*node, 0), depth + 1) : "";
    const auto* const guard = node->op_type() == "Where" ? m_reading.makerOf("IsNaN", inputOf(*node, 0)) : nullptr;
    const bool isGuard = guard && m_reading.number(inputOf(*node, 1)) == 0.0 &&
                         m_reading.source(inputOf(*guard, 0)) == m_reading.source(inputOf(*node, 2));
    return isGuard ? logitsOf(inputOf(*node, 2), depth + 1) : "";
  }

  /// x of exp(x) / sum of exp(x).
  std::string exponentsOfShares(const ::onnx::NodeProto& quotient) const {
    const auto* const exponential = m_reading.makerOf("Exp", inputOf(quotient, 0));
    const auto* const sum = m_reading.makerOf("ReduceSum", inputOf(quotient, 1));
    const bool isShare = exponential && sum && isOfRows(*sum) &&
                         m_reading.source(inputOf(*sum, 0)) == m_reading.source(exponential->output(0));
    return isShare ? withoutLargest(inputOf(*exponential, 0)) : "";
  }

  /// The largest element of each row may be subtracted from the row, which changes no share.
  std::string withoutLargest(const std::string& tensor) const {
    const auto* const difference = m_reading.makerOf("Sub", tensor);
    const auto* const largest = difference ? m_reading.makerOf("ReduceMax", inputOf(*difference, 1)) : nullptr;
    const bool isOfItself = largest && isOfRows(*largest) &&
                            m_reading.source(inputOf(*largest, 0)) == m_reading.source(inputOf(*difference, 0));
    return isOfItself ? inputOf(*difference, 0) : tensor;
  }

  bool isOfRows(const ::onnx::NodeProto& reduction) const {
    return integerOf(reduction, "keepdims", 1) == 1 &&
           patterns::numLastAxes(m_reading, reduction, inputOf(reduction, 0)) == 1;
  }

  std::optional<Scores> scoresAt(const std::string& tensor, int depth) {
    const auto* const node = m_reading.maker(tensor);
    if (!node || depth > kLongestChain || !node->domain().empty()) return std::nullopt;
    const std::string& type = node->op_type();
    if (type == "MatMul") return Scores{inputOf(*node, 0), inputOf(*node, 1), node->output(0)};
    if (type == "Mul" || type == "Div") return scaled(*node, depth);
    if (type == "Add") return biased(*node, depth);
    if (type == "Where") return masked(*node, depth);
    if (type == "Tanh") return capped(*node, depth);
    if (type == "Max") return unlimited(*node, depth);
    if (!isReshape(*node) || !keepsScores(*node)) return std::nullopt;
    auto scores = scoresAt(inputOf(*node, 0), depth + 1);
    if (scores) scores->steps.push_back({.kind = ScoreStep::Kind::Reshape, .made = node->output(0)});
    return scores;
  }

  static bool hasMasks(const Scores& scores) {
    return std::ranges::any_of(scores.steps,
                               [](const ScoreStep& step) { return step.kind != ScoreStep::Kind::Reshape; });
  }

  std::optional<Scores> scaled(const ::onnx::NodeProto& node, int depth) {
    const auto by = [&](int x, int number) -> std::optional<Scores> {
      const auto value = m_numbers.number(inputOf(node, number));
      if (!value || *value == 0.0 || !std::isfinite(*value)) return std::nullopt;
      auto scores = scoresAt(inputOf(node, x), depth + 1);
      if (!scores || hasMasks(*scores)) return std::nullopt;
      scores->scale *= node.op_type() == "Mul" ? *value : 1.0 / *value;
      return scores;
    };
    if (auto scores = by(0, 1)) return scores;
    return node.op_type() == "Mul" ? by(1, 0) : std::nullopt;
  }

  std::optional<Scores> capped(const ::onnx::NodeProto& node, int depth) {
    auto scores = scoresAt(inputOf(node, 0), depth + 1);
    if (!scores || scores->isCapped || hasMasks(*scores)) return std::nullopt;
    scores->innerScale = scores->scale;
    scores->scale = 1.0;
    scores->isCapped = true;
    return scores;
  }

  std::optional<Scores> biased(const ::onnx::NodeProto& node, int depth) {
    const auto with = [&](int x, int bias) -> std::optional<Scores> {
      auto scores = scoresAt(inputOf(node, x), depth + 1);
      if (scores) scores->steps.push_back({.tensor = inputOf(node, bias), .made = node.output(0)});
      return scores;
    };
    if (auto scores = with(0, 1)) return scores;
    return with(1, 0);
  }

  /// What is limited to the lowest number is not limited.
  std::optional<Scores> unlimited(const ::onnx::NodeProto& node, int depth) {
    for (const int x : {0, 1})
      if (const auto least = m_numbers.number(inputOf(node, 1 - x));
          least && *least <= kMaskingScore && node.input_size() == 2)
        return scoresAt(inputOf(node, x), depth + 1);
    return std::nullopt;
  }

  std::optional<Scores> masked(const ::onnx::NodeProto& node, int depth) {
    for (const int x : {1, 2}) {
      const auto fill = m_numbers.of(inputOf(node, 3 - x));
      if (!fill || fill->values.empty()) continue;
      const double value = fill->values.front();
      if (value > kMaskingScore || std::ranges::any_of(fill->values, [&](double each) { return each != value; }))
        continue;
      auto scores = scoresAt(inputOf(node, x), depth + 1);
      if (!scores) continue;
      scores->steps.push_back({.kind = ScoreStep::Kind::Mask,
                               .tensor = inputOf(node, 0),
                               .isKeptIfTrue = x == 1,
                               .fill = value,
                               .made = node.output(0)});
      return scores;
    }
    return std::nullopt;
  }

  const OnnxReading& m_reading;
  OnnxViews& m_views;
  OnnxNumbers& m_numbers;
};

}  // namespace

std::optional<AttentionParts> attentionAt(const OnnxReading& reading, OnnxViews& views, OnnxNumbers& numbers,
                                          const ::onnx::NodeProto& node) {
  AttentionSearch search(reading, views, numbers);
  if (node.output_size() == 0) return std::nullopt;
  if (node.domain() == "com.microsoft") {
    if (node.op_type() == "MultiHeadAttention") return search.multiHead(node);
    return node.op_type() == "GroupQueryAttention" ? search.grouped(node) : std::nullopt;
  }
  if (!node.domain().empty() && node.domain() != "ai.onnx") return std::nullopt;
  if (node.op_type() == "MatMul") return search.inPieces(node);
  return node.op_type() == "Attention" ? search.whole(node) : std::nullopt;
}

}  // namespace fuseline
