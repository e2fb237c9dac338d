// Golden values of attention and rotary embedding: computed elsewhere in double precision, gradients verified there by
// central differences.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_form.h"
#include "core/ops/catalog.h"
#include "core/ops/rotary_form.h"
#include "tests/support/compare.h"
#include "tests/support/structured_samples.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr Tolerance kEightDecimals = {.relative = 0.0, .absolute = 5.1e-9};

using Values = std::vector<double>;
using List = std::vector<std::int64_t>;

/// x[n] = sin(a n + b), n counting [heads, tokens, channels]; as [tokens, 1, heads, channels].
ReferenceTensor sines(std::int64_t heads, std::int64_t tokens, std::int64_t channels, double a, double b) {
  ReferenceTensor tensor{.shape = {tokens, 1, heads, channels},
                         .values = Values(static_cast<std::size_t>(heads * tokens * channels))};
  for (std::int64_t n = 0; n < heads * tokens * channels; ++n) {
    const std::int64_t head = n / channels / tokens;
    const std::int64_t token = n / channels % tokens;
    tensor.values[static_cast<std::size_t>((token * heads + head) * channels + n % channels)] =
        std::sin(a * static_cast<double>(n) + b);
  }
  return tensor;
}

/// As the golden values are ordered: [heads, tokens, channels].
Values byHeads(const ReferenceTensor& tensor, std::int64_t heads, std::int64_t channels) {
  const std::int64_t tokens = tensor.shape.front();
  Values values;
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t token = 0; token < tokens; ++token)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        values.push_back(tensor.values[static_cast<std::size_t>((token * heads + head) * channels + channel)]);
  return values;
}

/// One call and its gradients; D is 2.
struct AttentionCall {
  AttentionCall(std::int64_t numHeads, std::int64_t numGroups, std::int64_t queries, std::int64_t keys,
                const AttributeValues& given)
      : H(numHeads),
        G(numGroups),
        sample(attentionSample({.B = 1, .queries = queries, .keys = keys, .H = H, .G = G, .D = 2, .Dv = 2}, given)) {
    inputs = {sines(H, queries, 2, 0.7, 0.1), sines(G, keys, 2, 0.9, 0.3), sines(G, keys, 2, 1.1, 0.5)};
    dy = sines(H, queries, 2, 1.3, 0.7);
    dy.shape = {queries, 1, H * 2};
  }

  void run() {
    forward = sample.operation->forwardCompute(sample.attributes, inputs, parameters);
    SavedValues saved;
    for (std::size_t slot = 0; slot < inputs.size(); ++slot)
      saved.add({OperandKind::Input, static_cast<int>(slot)}, inputs[slot]);
    if (!parameters.empty()) saved.add({OperandKind::Parameter, 0}, parameters[0]);
    saved.add({OperandKind::Output, 0}, forward.outputs[0]);
    saved.add({OperandKind::Residual, 0}, forward.residuals[0]);
    backward = sample.operation->backwardCompute(sample.attributes, saved, std::array{dy});
  }

  Values y() const { return byHeads(forward.outputs[0], H, 2); }
  const Values& lse() const { return forward.residuals[0].values; }
  Values gradient(int slot) const {
    return byHeads(backward.inputs[static_cast<std::size_t>(slot)], slot == 0 ? H : G, 2);
  }

  std::int64_t H, G;
  OpSample sample;
  std::vector<ReferenceTensor> inputs, parameters;
  ReferenceTensor dy;
  ReferenceForward forward;
  ReferenceBackward backward;
};

void expectGolden(const Values& actual, const Values& expected) {
  EXPECT_TRUE(allClose(actual, expected, kEightDecimals));
}

TEST(GoldenAttention, Causal) {
  AttentionCall call(1, 1, 3, 3, {});
  call.run();
  expectGolden(call.y(), {0.47942554, 0.99957360, 0.45407592, 0.21470184, -0.11089213, -0.07469557});
  expectGolden(call.lse(), {0.49363599, 1.40888738, 1.13408289});
  expectGolden(call.gradient(0), {0.0, 0.0, 0.16140950, -0.22487984, -0.13416816, 0.03790108});
  expectGolden(call.gradient(1), {-0.25660553, -0.27983482, 0.24579514, 0.29982995, 0.01081040, -0.01999513});
  expectGolden(call.gradient(2), {0.46884273, 0.60012230, -0.21001466, -0.20127184, -0.14623274, 0.31042382});
}

/// Expected values: PyTorch's float8_e4m3fn and float8_e5m2, the rest in float64.
TEST(GoldenAttention, RoundsProbabilitiesAndScoreGradientsToFp8) {
  AttentionCall call(1, 1, 3, 3, {});
  call.sample.attributes.set(kProbabilityFormat, std::string("e4m3"));
  call.sample.attributes.set(kScoreGradientFormat, std::string("e5m2"));
  call.run();
  expectGolden(call.y(), {0.47942554, 0.99957360, 0.45340271, 0.19385786, -0.11347149, -0.07839766});
  expectGolden(call.lse(), {0.49363599, 1.40888738, 1.13408289});
  expectGolden(call.gradient(0), {0.0, 0.0, 0.16569607, -0.23085200, -0.14184458, 0.03208379});
  expectGolden(call.gradient(1), {-0.26620712, -0.28211175, 0.25124320, 0.30978933, 0.00997595, -0.01845172});
  expectGolden(call.gradient(2), {0.47187567, 0.61086889, -0.21240023, -0.21339269, -0.14688013, 0.31179811});
}

TEST(GoldenAttention, GroupedInAWindowAtTheBottomRight) {
  AttentionCall call(2, 1, 2, 4, {{"attn_mask_type", std::string("causal_bottom_right")}, {"window_size", List{1, 0}}});
  call.run();
  expectGolden(call.y(),
               {-0.04468917, -0.50054271, 0.21446251, 0.57391674, -0.31046047, -0.43787310, -0.51389345, 0.05464047});
  expectGolden(call.lse(), {0.54024765, 0.14726495, 0.84285507, 1.44092203});
  expectGolden(call.gradient(0),
               {0.14800982, 0.10853124, -0.03021147, -0.28820789, -0.21638732, -0.15867044, 0.01771880, 0.16903179});
  expectGolden(call.gradient(1), {0.0, 0.0, -0.02385221, 0.13019649, 0.36211410, 0.17193850, -0.33826189, -0.30213499});
  expectGolden(call.gradient(2), {0.0, 0.0, 0.25030038, 0.98312705, 0.55249183, 0.15496069, 0.10829023, -0.79529258});
}

/// A mask of finite numbers, as exporters write it: a row of which all are masked attends to all keys alike, and its
/// gradients are those of a softmax. Expected values: PyTorch in float64.
TEST(GoldenAttention, RowsOfLargeNegativeBiases) {
  constexpr double kLeast = -3.4028235e38;
  AttentionCall call(
      1, 1, 3, 3,
      {{"attn_mask_type", std::string("no_mask")}, {"core_attention_bias_type", std::string("post_scale_bias")}});
  call.inputs.push_back(
      {.shape = {1, 1, 3, 3}, .values = {kLeast, kLeast, kLeast, -1e4, -1e4 + 0.5, -1e4 - 1.0, 0.1, -0.2, 0.3}});
  call.run();
  expectGolden(call.y(), {-0.02521573, 0.03610007, 0.41442045, 0.00936855, -0.23678364, -0.04264606});
  expectGolden(call.gradient(0), {0.16959035, 0.46613672, 0.13900753, -0.22117268, -0.10494539, 0.04438751});
  expectGolden(call.gradient(1), {-0.21466528, -0.05777431, 0.22022232, 0.21747147, -0.00555704, -0.15969716});
  expectGolden(call.gradient(2), {0.05967689, 0.12646413, 0.02148458, -0.07852621, 0.03143386, 0.66133637});
  expectGolden(call.backward.inputs[3].values, {0.40039428, -0.09920547, -0.30118881, -0.37851276, 0.36671937,
                                                0.01179339, 0.14215001, -0.18581168, 0.04366167});
}

/// As PyTorch's is_causal; not as flash-attn since 2.1.
TEST(GoldenAttention, CausalIsTopLeftWhereThereAreMoreKeys) {
  AttentionCall call(2, 1, 2, 4, {});
  call.run();
  expectGolden(call.y(),
               {0.47942554, 0.99957360, 0.45407592, 0.21470184, 0.47942554, 0.99957360, 0.45121510, 0.12612541});
}

TEST(GoldenAttention, EmptyRowsSinksAndASoftCap) {
  AttentionCall call(2, 2, 3, 2,
                     {{"attn_mask_type", std::string("causal_bottom_right")},
                      {"softmax_scale", 0.5},
                      {"softcap", 2.0},
                      {"softmax_type", std::string("learnable")}});
  call.parameters = {{.shape = {2}, .values = {0.25, -0.5}}};
  call.run();
  expectGolden(call.y(), {0.0, 0.0, 0.27099385, 0.56500598, 0.26970251, 0.05789553, 0.0, 0.0, -0.64129210, -0.18238737,
                          0.10536909, 0.37166836});
  expectGolden(call.lse(), {0.25, 1.08297722, 1.16376505, -0.5, 0.55769902, 0.71860100});
  expectGolden(call.gradient(0), {0.0, 0.0, -0.03626417, -0.11437332, -0.05958596, 0.06754144, 0.0, 0.0, -0.07942647,
                                  -0.11504177, -0.01912315, 0.21376877});
  expectGolden(call.gradient(1),
               {-0.10148303, -0.13791186, -0.02367785, 0.04379504, -0.17039498, -0.13283415, 0.15869870, 0.21738581});
  expectGolden(call.gradient(2),
               {-0.18763054, -0.35265815, -0.12548255, 0.26637518, -0.43316725, 0.04696233, 0.42209207, 0.30297467});
  expectGolden(call.backward.parameters[0].values, {0.28468297, -0.33164310});
}

// ---- rotary embedding

Attributes rotaryAttributes(const AttributeValues& given) {
  Attributes attributes = defaultAttributes(*builtinOperations().find("RotaryPositionEmbedding"));
  for (const auto& [name, value] : given) attributes.set(name, value);
  return attributes;
}

/// Row 1 of x[n] = sin(0.7 n + 0.1) in rows of four, at position 3.
Values rotatedRow(bool isInterleaved) {
  const Attributes attributes =
      rotaryAttributes({{"dim", std::int64_t{4}}, {"interleaved", isInterleaved}, {"offset", std::int64_t{3}}});
  const ReferenceTensor x{.shape = {1, 1, 4}, .values = {0.23924933, -0.44252044, -0.91616594, -0.95892427}};
  return builtinOperations()
      .find("RotaryPositionEmbedding")
      ->forwardCompute(attributes, std::array{x}, {})
      .outputs[0]
      .values;
}

TEST(GoldenRotary, TurnsHalvesOrNeighbors) {
  const Tolerance ofInput = {.relative = 0.0, .absolute = 2e-8};
  EXPECT_TRUE(allClose(rotatedRow(false), Values{-0.10756570, -0.41355791, 0.94076027, -0.97176641}, ofInput));
  EXPECT_TRUE(allClose(rotatedRow(true), Values{-0.17440655, 0.47185479, -0.88699028, -0.98597365}, ofInput));
}

constexpr Tolerance kNineDigits = {.relative = 5.1e-9, .absolute = 0.0};

TEST(GoldenRotary, ScalesFrequenciesAsLlama3) {
  const Values f = rotaryFrequencies(rotaryAttributes({{"dim", std::int64_t{128}},
                                                       {"rotary_base", 5e5},
                                                       {"rope_type", std::string("llama3")},
                                                       {"factor", 8.0},
                                                       {"original_max_position_embeddings", std::int64_t{8192}}}),
                                     8192);
  EXPECT_TRUE(allClose(Values{f[30], f[32], f[36], f[63]},
                       Values{1.37189357e-3, 5.24846161e-4, 7.78465527e-5, 3.06892599e-7}, kNineDigits));
}

TEST(GoldenRotary, ScalesFrequenciesAsYarnInGptOss) {
  const Attributes attributes = rotaryAttributes({{"dim", std::int64_t{64}},
                                                  {"rotary_base", 1.5e5},
                                                  {"rope_type", std::string("yarn")},
                                                  {"factor", 32.0},
                                                  {"original_max_position_embeddings", std::int64_t{4096}},
                                                  {"truncate", false}});
  const Values f = rotaryFrequencies(attributes, 4096);
  EXPECT_TRUE(allClose(Values{f[8], f[12], f[31]}, Values{5.08132748e-2, 6.79495949e-3, 3.02351143e-7}, kNineDigits));
  EXPECT_NEAR(rotaryAttentionFactor(attributes), 1.34657359, 5e-9);
}

/// Expected values: ROPE_INIT_FUNCTIONS of transformers 5.24, in float32.
TEST(GoldenRotary, ScalesByTheLongestSequence) {
  constexpr Tolerance kFloat = {.relative = 2e-5, .absolute = 0.0};
  AttributeValues given = {{"dim", std::int64_t{8}},
                           {"rope_type", std::string("dynamic")},
                           {"factor", 4.0},
                           {"original_max_position_embeddings", std::int64_t{16}},
                           {"max_seq_len", std::int64_t{70}}};
  EXPECT_TRUE(
      allClose(rotaryFrequencies(rotaryAttributes(given), 4), Values{1.0, 4.10088e-2, 1.68172e-3, 6.89655e-5}, kFloat));
  given[1].second = std::string("longrope");
  given.emplace_back("short_factor", std::string("1, 1.1, 1.2, 1.3"));
  given.emplace_back("long_factor", std::string("2, 3, 4, 5"));
  given[4].second = std::int64_t{17};
  EXPECT_TRUE(allClose(rotaryFrequencies(rotaryAttributes(given), 4), Values{0.5, 3.33333e-2, 2.5e-3, 2e-4}, kFloat));
  given[4].second = std::int64_t{16};
  EXPECT_TRUE(allClose(rotaryFrequencies(rotaryAttributes(given), 17), Values{1.0, 9.09091e-2, 8.33333e-3, 7.69231e-4},
                       kFloat));
}

}  // namespace
}  // namespace fuseline::testing
