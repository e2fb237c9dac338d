// DotProductAttention and its neighbors by their definitions: masks, work, ports, and the sentences with which they
// refuse.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_form.h"
#include "core/ops/catalog.h"
#include "core/ops/rotary_form.h"
#include "tests/support/structured_samples.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fuseline::testing {
namespace {

using List = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

std::string text(const char* value) { return value; }

Names namesOf(const auto& items) {
  Names names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

Names inputsWith(const AttributeValues& given) { return namesOf(attentionSample({}, given).operation->inputs); }

TEST(DotProductAttention, HasTheInputsThatItsAttributesAskFor) {
  EXPECT_EQ(inputsWith({}), (Names{"x", "k", "v"}));
  EXPECT_EQ(inputsWith({{"attn_mask_type", text("padding_causal")}}),
            (Names{"x", "k", "v", "cu_seqlens_q", "cu_seqlens_kv"}));
  EXPECT_EQ(inputsWith({{"attn_mask_type", text("arbitrary")}, {"core_attention_bias_type", text("post_scale_bias")}}),
            (Names{"x", "k", "v", "core_attention_bias", "attention_mask"}));
  EXPECT_EQ(inputsWith({{"core_attention_bias_type", text("alibi")}}), (Names{"x", "k", "v"}));
}

TEST(DotProductAttention, HasAnOffsetOnlyIfItIsLearned) {
  EXPECT_TRUE(attentionSample({}, {{"softmax_type", text("off-by-one")}}).operation->parameters.empty());
  EXPECT_EQ(namesOf(attentionSample({}, {{"softmax_type", text("learnable")}}).operation->parameters),
            Names{"softmax_offset"});
}

TEST(DotProductAttention, MergesTheHeadsOfItsOutput) {
  const OpSample sample = attentionSample({.B = 3, .queries = 5, .keys = 7, .H = 4, .G = 2, .D = 6, .Dv = 8});
  const OperationSpecs specs = *inferSpecs(*sample.operation, sample.attributes, sample.inputs);
  EXPECT_EQ(specs.outputs[0].shape, (Shape{5, 3, 32}));
  EXPECT_EQ(specs.residuals[0], (TensorSpec{DType::F32, {3, 4, 5}}));
}

// ---- refusals

std::string refusal(const AttentionExtents& extents, const AttributeValues& given, int slot = 0, TensorSpec spec = {}) {
  OpSample sample = attentionSample(extents, given);
  if (!spec.shape.empty()) sample.inputs[static_cast<std::size_t>(slot)] = std::move(spec);
  const Result<OperationSpecs> specs = inferSpecs(*sample.operation, sample.attributes, sample.inputs);
  return specs ? "no refusal" : specs.error().message;
}

TEST(DotProductAttention, RefusesGroupsThatDoNotDivideTheHeads) {
  EXPECT_EQ(refusal({.H = 4, .G = 3}, {}),
            "DotProductAttention: num_attention_heads is 4, but num_gqa_groups is 3; it must divide the heads.");
}

TEST(DotProductAttention, RefusesOtherShapes) {
  EXPECT_EQ(
      refusal({}, {}, 1, {DType::F32, {5, 2, 3, 4}}),
      "DotProductAttention: k is [5, 2, 3, 4]; expected [S, B, 2, 4] or [S, B, 8] for sbhd, 2 heads of 4 channels.");
  EXPECT_EQ(refusal({}, {}, 2, {DType::F32, {6, 2, 2, 4}}),
            "DotProductAttention: v has 2 sequences of 6 tokens, but k has 2 of 5; both must be the same.");
  EXPECT_EQ(refusal({}, {}, 0, {DType::F32, {5, 3, 2, 4}}),
            "DotProductAttention: x has 3 sequences, but k has 2; both must be the same.");
  EXPECT_EQ(refusal({}, {}, 1, {DType::BF16, {5, 2, 2, 4}}),
            "DotProductAttention: k is bf16, but x is f32; x, k and v must have one dtype.");
}

TEST(DotProductAttention, RefusesFurtherInputsOfOtherShapes) {
  EXPECT_EQ(
      refusal({}, {{"core_attention_bias_type", text("post_scale_bias")}}, 3, {DType::F32, {2, 5, 5}}),
      "DotProductAttention: core_attention_bias has the shape [2, 5, 5]; expected [2, 2, 5, 5]; the first two may "
      "be 1 (broadcast).");
  EXPECT_EQ(
      refusal({}, {{"attn_mask_type", text("padding")}}, 3, {DType::I64, {2}}),
      "DotProductAttention: cu_seqlens_q has the shape [2]; expected [3], one more entry than there are sequences.");
  EXPECT_EQ(refusal({}, {{"attn_mask_type", text("arbitrary")}}, 3, {DType::F32, {1, 1, 5, 5}}),
            "DotProductAttention: attention_mask is [1, 1, 5, 5] f32, but it must be i64; it holds counts.");
}

TEST(DotProductAttention, RefusesWindowsThatNoMaskHas) {
  EXPECT_EQ(
      refusal({}, {{"window_size", List{3, 2}}}),
      "DotProductAttention: window_size is [3, 2], but attn_mask_type is causal; expected a right side of 0, as a "
      "causal mask sees no later keys.");
  EXPECT_EQ(refusal({}, {{"window_size", List{-1, 2}}, {"attn_mask_type", text("no_mask")}}),
            "DotProductAttention: window_size is [-1, 2], but attn_mask_type is no_mask; expected both sides at least "
            "0, or [-1, -1] for no window.");
  EXPECT_EQ(refusal({}, {{"window_size", List{3}}}),
            "DotProductAttention: window_size is [3], but attn_mask_type is causal; expected two numbers of keys, to "
            "the left and to the right.");
}

TEST(DotProductAttention, RefusesPackedSequencesWithoutLengths) {
  const AttributeValues packed = {{"qkv_format", text("thd")}};
  EXPECT_EQ(refusal({}, packed),
            "DotProductAttention: qkv_format is thd, but attn_mask_type is causal; sequences one after another need a "
            "padding mask, such as padding_causal.");
}

TEST(DotProductAttention, RefusesNumbersOutOfRange) {
  EXPECT_EQ(refusal({}, {{"attention_dropout", 1.0}}),
            "DotProductAttention: attention_dropout is 1, but it must be at least 0 and less than 1.");
  EXPECT_EQ(refusal({}, {{"kv_channels", List{4, 4, 4}}}),
            "DotProductAttention: kv_channels has 3 sizes; expected one, or two: that of x and k, and that of v.");
}

std::string rotaryRefusal(const AttributeValues& given, const Shape& x = {5, 2, 3, 8}) {
  const FusibleOperation& op = *builtinOperations().find("RotaryPositionEmbedding");
  Attributes attributes = defaultAttributes(op);
  attributes.set("dim", std::int64_t{8});
  for (const auto& [name, value] : given) attributes.set(name, value);
  const std::vector<TensorSpec> inputs = {{DType::F32, x}};
  const Result<OperationSpecs> specs = op.infer(attributes, inputs);
  return specs ? "no refusal" : specs.error().message;
}

TEST(RotaryPositionEmbedding, RefusesWhatItCannotTurn) {
  EXPECT_EQ(rotaryRefusal({}), "no refusal");
  EXPECT_EQ(
      rotaryRefusal({{"dim", std::int64_t{7}}}, {5, 2, 7}),
      "RotaryPositionEmbedding: dim is 7 and rotary_percent 1, so 7 channels rotate; they rotate in pairs, so the "
      "number must be even.");
  EXPECT_EQ(rotaryRefusal({{"rope_type", text("llama3")}}),
            "RotaryPositionEmbedding: rope_type is llama3, but factor is not set; give its value.");
  EXPECT_EQ(
      rotaryRefusal({}, {5, 2, 9}),
      "RotaryPositionEmbedding: x is [5, 2, 9]; expected [S, B, 1, 8] or [S, B, 8] for sbhd, 1 heads of 8 channels.");
}

TEST(RotaryPositionEmbedding, RefusesFrequenciesByAnUnknownLength) {
  const AttributeValues dynamic = {
      {"rope_type", text("dynamic")}, {"factor", 4.0}, {"original_max_position_embeddings", std::int64_t{16}}};
  const auto with = [&](AttributeValues more) {
    more.insert(more.begin(), dynamic.begin(), dynamic.end());
    return more;
  };
  EXPECT_EQ(rotaryRefusal(with({})), "no refusal");
  EXPECT_EQ(rotaryRefusal(with({{"start_positions", true}})),
            "RotaryPositionEmbedding: the frequencies of rope_type dynamic depend on the longest sequence, which "
            "start_positions decide; set max_seq_len to its length.");
  EXPECT_EQ(rotaryRefusal({{"beta_fast", 0.0}}),
            "RotaryPositionEmbedding: beta_fast is 0, but it must be finite and more than 0.");
  EXPECT_EQ(rotaryRefusal({{"seq_len_interpolation_factor", 2.0},
                           {"pretrained_max_position_embeddings", std::int64_t{8}},
                           {"tensor_format", text("thd")}},
                          {9, 3, 8}),
            "RotaryPositionEmbedding: the frequencies of seq_len_interpolation_factor depend on the longest sequence, "
            "which cu_seqlens decide; set max_seq_len to its length.");
  EXPECT_EQ(rotaryRefusal({{"max_seq_len", std::int64_t{6}}, {"offset", std::int64_t{2}}}),
            "RotaryPositionEmbedding: max_seq_len is 6, but x has 5 tokens from position 2 on; it must be at least 7.");
}

TEST(RotaryPositionEmbedding, RefusesPositionsBeyondTheLongestSequence) {
  const RotaryForm form = {.maxLength = 64};
  const TokenLayout x = {.batch = 2, .tokens = 5};
  const std::int64_t fits[] = {3, 59}, tooFar[] = {3, 60};
  EXPECT_TRUE(rotaryPositions(form, x, {}, fits));
  const Result<std::vector<std::int64_t>> refused = rotaryPositions(form, x, {}, tooFar);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "Sequence 1 ends at position 64, but max_seq_len is 64; set it to at least 65.");
}

TEST(Split, RefusesSizesThatAreNotTheWidth) {
  const FusibleOperation& op = *builtinOperations().find("Split");
  Attributes attributes;
  attributes.set("sizes", List{4, 3});
  const std::vector<TensorSpec> inputs = {{DType::F32, {2, 8}}};
  EXPECT_EQ((*specialised(op, attributes))->infer(attributes, inputs).error().message,
            "Split: sizes is [4, 3], but the last axis of x has 8 elements; the sizes must add up to that.");
}

TEST(Concat, RefusesOtherRows) {
  const FusibleOperation& op = *builtinOperations().find("Concat");
  const std::vector<TensorSpec> inputs = {{DType::F32, {2, 8}}, {DType::F32, {3, 8}}};
  EXPECT_EQ(op.infer(defaultAttributes(op), inputs).error().message,
            "Concat: x1 has the shape [3, 8], but x has the shape [2, 8]; all axes but the last must be the same.");
}

// ---- masks and work

AttentionForm formOf(const AttributeValues& given) { return attentionForm(attentionSample({}, given).attributes); }

/// The keys that a query sees, by TransformerEngine's documentation of pairs.
bool isKept(const std::string& mask, const List& window, std::int64_t i, std::int64_t j, std::int64_t queries,
            std::int64_t keys) {
  const bool isTopLeft = mask == "causal";
  const std::int64_t diagonal = i + (isTopLeft ? 0 : keys - queries);
  const bool isCausal = mask.find("causal") != std::string::npos;
  if (isCausal && j > diagonal) return false;
  if (window[0] >= 0 && j < diagonal - window[0]) return false;
  return isCausal || window[1] < 0 || j <= diagonal + window[1];
}

RC_GTEST_PROP(DotProductAttention, RangesAndPairsAreThoseOfTheMask, ()) {
  const auto mask = *rc::gen::element(text("no_mask"), text("causal"), text("causal_bottom_right"));
  const auto queries = *rc::gen::inRange<std::int64_t>(0, 12);
  const auto keys = *rc::gen::inRange<std::int64_t>(0, 12);
  const auto left = *rc::gen::inRange<std::int64_t>(-1, 5);
  const auto right = left < 0 ? std::int64_t{-1} : *rc::gen::inRange<std::int64_t>(0, 5);
  const List window = {left, mask == "no_mask" ? right : std::int64_t{0}};
  AttributeValues given = {{"attn_mask_type", mask}};
  if (left >= 0) given.emplace_back("window_size", window);
  const AttentionForm form = formOf(given);
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < queries; ++i) {
    const KeyRange range = form.keysOf(i, queries, keys);
    for (std::int64_t j = 0; j < keys; ++j) {
      const bool expected = isKept(mask, {left, right}, i, j, queries, keys);
      RC_ASSERT((j >= range.first && j < range.last) == expected);
      pairs += expected ? 1 : 0;
    }
  }
  RC_ASSERT(numPairs(form, queries, keys) == pairs);
}

TEST(DotProductAttention, CountsTheWorkOfKeptPairs) {
  const auto flops = [](const AttributeValues& given) {
    const OpSample sample =
        attentionSample({.B = 3, .queries = 8, .keys = 8, .H = 4, .G = 2, .D = 16, .Dv = 16}, given);
    return sample.operation->flops(sample.attributes, sample.inputs);
  };
  EXPECT_EQ(flops({{"attn_mask_type", text("no_mask")}}).forward, 4 * 3 * 4 * 64 * 16);
  EXPECT_EQ(flops({}).forward, 4 * 3 * 4 * 36 * 16);
  EXPECT_EQ(flops({}).backward, 2 * flops({}).forward);
}

/// Sums over lengths that no loop could count.
TEST(DotProductAttention, CountsPairsOfAnyLength) {
  const AttentionForm causal = formOf({});
  EXPECT_EQ(numPairs(causal, 1 << 20, 1 << 20), (std::int64_t{1} << 39) + (std::int64_t{1} << 19));
  EXPECT_EQ(numPairs(causal, std::int64_t{1} << 40, std::int64_t{1} << 40), std::int64_t{1} << 58);
}

TEST(DotProductAttention, AlibiSlopesOfAnyNumberOfHeads) {
  EXPECT_EQ(alibiSlopes(2), (std::vector<double>{0x1p-4, 0x1p-8}));
  EXPECT_EQ(alibiSlopes(3), (std::vector<double>{0x1p-4, 0x1p-8, 0x1p-2}));
}

}  // namespace
}  // namespace fuseline::testing
