// Reads the attributes of DotProductAttention, and how its tensors stand.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_form.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kAttentionName = "DotProductAttention";

AttentionBias biasOf(std::string_view type) {
  if (type == "pre_scale_bias") return AttentionBias::PreScale;
  if (type == "post_scale_bias") return AttentionBias::PostScale;
  return type == "alibi" ? AttentionBias::Alibi : AttentionBias::None;
}

SoftmaxType softmaxOf(std::string_view type) {
  if (type == "off-by-one") return SoftmaxType::OffByOne;
  return type == "learnable" ? SoftmaxType::Learnable : SoftmaxType::Vanilla;
}

/// Optional inputs follow x, k and v in this order.
void setSlots(AttentionForm& form, std::string_view mask) {
  int slot = AttentionForm::kValue + 1;
  if (form.bias == AttentionBias::PreScale || form.bias == AttentionBias::PostScale) form.biasSlot = slot++;
  if (mask == "arbitrary") form.maskSlot = slot++;
  if (!mask.starts_with("padding") && form.format != QkvFormat::Thd) return;
  form.cuSeqlensQSlot = slot++;
  form.cuSeqlensKvSlot = slot++;
}

/// As TransformerEngine reads window_size: a causal mask ends at the diagonal, and [-1, 0] elsewhere means no window.
void setWindow(AttentionForm& form, const Attributes& attributes, std::string_view mask) {
  const bool isCausal = mask.find("causal") != std::string_view::npos;
  if (isCausal) form.right = 0;
  if (!attributes.has("window_size")) return;
  const std::vector<std::int64_t>& window = attributes.integers("window_size");
  if (window.size() != 2 || window == std::vector<std::int64_t>{-1, 0}) return;
  form.left = window[0];
  if (!isCausal) form.right = window[1];
}

/// Named masks decide for themselves; bottom_right_diagonal is for the others.
bool isBottomRight(const Attributes& attributes, std::string_view mask) {
  if (mask.ends_with("causal")) return false;
  if (mask.ends_with("bottom_right")) return true;
  return !attributes.has("bottom_right_diagonal") || attributes.boolean("bottom_right_diagonal");
}

void setSizes(AttentionForm& form, const Attributes& attributes) {
  if (attributes.has("num_attention_heads")) form.heads = attributes.integer("num_attention_heads");
  form.groups = attributes.has("num_gqa_groups") ? attributes.integer("num_gqa_groups") : form.heads;
  if (!attributes.has("kv_channels") || attributes.integers("kv_channels").empty()) return;
  form.qkChannels = attributes.integers("kv_channels").front();
  form.vChannels = attributes.integers("kv_channels").back();
}

std::optional<ElementFormat> formatIn(const Attributes& attributes, const char* name) {
  return attributes.has(name) ? parseElementFormat(attributes.text(name)) : std::nullopt;
}

}  // namespace

KeyRange AttentionForm::keysOf(std::int64_t query, std::int64_t numQueries, std::int64_t numKeys) const {
  const std::int64_t diagonal = query + delta(numQueries, numKeys);
  return {.first = left < 0 ? 0 : std::max<std::int64_t>(0, diagonal - left),
          .last = right < 0 ? numKeys : std::min(numKeys, diagonal + right + 1)};
}

AttentionForm attentionForm(const Attributes& attributes) {
  const std::string& mask = attributes.text("attn_mask_type");
  AttentionForm form{.format = qkvFormat(attributes.text("qkv_format")),
                     .bias = biasOf(attributes.text("core_attention_bias_type")),
                     .softmax = softmaxOf(attributes.text("softmax_type"))};
  setSlots(form, mask);
  setWindow(form, attributes, mask);
  form.isBottomRight = isBottomRight(attributes, mask);
  setSizes(form, attributes);
  form.scale = attributes.has("softmax_scale") ? attributes.real("softmax_scale")
                                               : 1.0 / std::sqrt(static_cast<double>(form.qkChannels));
  form.softcap = attributes.real("softcap");
  form.dropout = attributes.real("attention_dropout");
  form.dropoutMask = {form.dropout, static_cast<std::uint64_t>(attributes.integer("seed")),
                      attributes.has(kAttentionMaskName) ? attributes.text(kAttentionMaskName) : ""};
  form.probabilityFormat = formatIn(attributes, kProbabilityFormat);
  form.scoreGradientFormat = formatIn(attributes, kScoreGradientFormat);
  return form;
}

std::vector<double> alibiSlopes(std::int64_t heads) {
  std::int64_t power = 1;  // the largest power of two that is not above `heads`
  while (power * 2 <= heads) power *= 2;
  const auto n = static_cast<double>(power);
  std::vector<double> slopes;
  for (std::int64_t t = 1; t <= power; ++t) slopes.push_back(std::exp2(-8.0 * static_cast<double>(t) / n));
  for (std::int64_t t = 1; t <= heads - power; ++t)
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(2 * t - 1) / n));
  return slopes;
}

namespace {

std::optional<Error> checkSameTokens(const AttentionForm& form, const AttentionLayouts& layouts) {
  const TokenLayout& k = layouts.k;
  if (layouts.v.tokens != k.tokens || layouts.v.batch != k.batch)
    return Error{fmt::format("{}: v has {} sequences of {} tokens, but k has {} of {}; both must be the same.",
                             kAttentionName, layouts.v.batch, layouts.v.tokens, k.batch, k.tokens)};
  if (form.format == QkvFormat::Thd || layouts.q.batch == k.batch) return std::nullopt;
  return Error{fmt::format("{}: x has {} sequences, but k has {}; both must be the same.", kAttentionName,
                           layouts.q.batch, k.batch)};
}

/// Its heads are merged in TransformerEngine's output.
TokenLayout outputLayout(const TokenLayout& q, std::int64_t channels) {
  TokenLayout y = q;
  y.channels = y.headStride = channels;
  y.batchStride = q.batchStride / q.channels * channels;
  y.tokenStride = q.tokenStride / q.channels * channels;
  return y;
}

}  // namespace

Result<AttentionLayouts> attentionLayouts(const AttentionForm& form, std::span<const Shape> inputs) {
  const auto layout = [&](const char* port, int slot, std::int64_t heads, std::int64_t channels) {
    return tokenLayout(kAttentionName, port, form.format, inputs[static_cast<std::size_t>(slot)], heads, channels);
  };
  const Result<TokenLayout> q = layout("x", AttentionForm::kQuery, form.heads, form.qkChannels);
  if (!q) return q.error();
  const Result<TokenLayout> k = layout("k", AttentionForm::kKey, form.groups, form.qkChannels);
  if (!k) return k.error();
  const Result<TokenLayout> v = layout("v", AttentionForm::kValue, form.groups, form.vChannels);
  if (!v) return v.error();
  const AttentionLayouts layouts{.q = *q, .k = *k, .v = *v, .y = outputLayout(*q, form.vChannels)};
  if (auto error = checkSameTokens(form, layouts)) return *error;
  return layouts;
}

ScoreLayout scoreLayout(const Shape& shape) {
  return {.batchStride = shape[0] == 1 ? 0 : shape[1] * shape[2] * shape[3],
          .headStride = shape[1] == 1 ? 0 : shape[2] * shape[3],
          .rowStride = shape[3]};
}

Result<std::vector<AttentionSequence>> attentionSequences(const AttentionForm& form, const AttentionLayouts& layouts,
                                                          std::span<const std::int64_t> cuSeqlensQ,
                                                          std::span<const std::int64_t> cuSeqlensKv) {
  const Result<std::vector<TokenSpan>> queries = sequencesOf(form.format, layouts.q, "cu_seqlens_q", cuSeqlensQ);
  if (!queries) return queries.error();
  const Result<std::vector<TokenSpan>> keys = sequencesOf(form.format, layouts.k, "cu_seqlens_kv", cuSeqlensKv);
  if (!keys) return keys.error();
  std::vector<AttentionSequence> sequences;
  for (std::size_t i = 0; i < queries->size(); ++i)
    sequences.push_back({.entry = form.format == QkvFormat::Thd ? 0 : static_cast<std::int64_t>(i),
                         .queries = (*queries)[i],
                         .keys = (*keys)[i]});
  return sequences;
}

Shape lseShape(const AttentionForm& form, const TokenLayout& q) {
  Shape shape = form.format == QkvFormat::Thd ? Shape{q.tokens, form.heads} : Shape{q.batch, form.heads, q.tokens};
  if (form.hasBias()) shape.insert(shape.begin(), 2);
  return shape;
}

std::int64_t largestOffset(const AttentionForm& form, const TokenLayout& q) {
  if (!form.hasBias()) return 0;
  return (form.format == QkvFormat::Thd ? 1 : q.batch) * form.heads * q.tokens;
}

std::int64_t lseIndex(const AttentionForm& form, const TokenLayout& q, std::int64_t entry, std::int64_t token,
                      std::int64_t head) {
  if (form.format == QkvFormat::Thd) return token * form.heads + head;
  return (entry * form.heads + head) * q.tokens + token;
}

std::uint64_t dropoutIndex(const AttentionLayouts& layouts, std::int64_t entry, std::int64_t head, std::int64_t token) {
  const TokenLayout& q = layouts.q;
  return static_cast<std::uint64_t>(((entry * q.heads + head) * q.tokens + token) * layouts.k.tokens);
}

namespace {

// Wide enough for the sums of any two 64-bit numbers of tokens.
__extension__ typedef __int128 Wide;

/// Sum of min(max(i + shift, 0), limit) for i in [0, count).
Wide sumOfClamped(Wide count, Wide shift, Wide limit) {
  const Wide low = std::clamp<Wide>(-shift, 0, count);            // from here on positive
  const Wide high = std::clamp<Wide>(limit - shift, low, count);  // from here on the limit
  const Wide rising = high - low;
  return rising * (low + shift) + rising * (rising - 1) / 2 + (count - high) * limit;
}

}  // namespace

std::int64_t numPairs(const AttentionForm& form, std::int64_t numQueries, std::int64_t numKeys) {
  const Wide delta = form.delta(numQueries, numKeys);
  const Wide ends =
      form.right < 0 ? Wide(numQueries) * numKeys : sumOfClamped(numQueries, delta + form.right + 1, numKeys);
  const Wide begins = form.left < 0 ? 0 : sumOfClamped(numQueries, delta - form.left, numKeys);
  constexpr Wide kMost = Wide{1} << 58;
  return static_cast<std::int64_t>(std::min(ends - begins, kMost));
}

}  // namespace fuseline
