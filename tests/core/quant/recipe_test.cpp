// Recipes: defaults and formats as TransformerEngine has them, hardware, refusals, JSON.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipe.h"

#include "core/support/json_fields.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

Recipe recipeOf(const std::string& name) { return *Recipe::create(*findRecipe(name)); }

std::string namesOf(const std::vector<RecipeDefinition>& recipes) {
  std::string names;
  for (const RecipeDefinition& recipe : recipes) names += recipe.name + " ";
  return names;
}

TEST(Recipes, AreThoseOfTransformerEngine) {
  EXPECT_EQ(namesOf(builtinRecipes()),
            "None DelayedScaling Float8CurrentScaling Float8BlockScaling MXFP8BlockScaling NVFP4BlockScaling "
            "CustomRecipe ");
}

TEST(Recipes, HaveTheDefaultsOfTransformerEngine) {
  const auto defaultsOf = [](const char* name) { return toJson(recipeOf(name))["fields"].dump(); };
  EXPECT_EQ(defaultsOf("None"), "{}");
  EXPECT_EQ(defaultsOf("DelayedScaling"),
            R"({"fp8_format":"HYBRID","margin":0,"amax_history_len":1024,"amax_compute_algo":"max","reduce_amax":true,)"
            R"("fp8_dpa":false,"fp8_mha":false,"split_accumulator_fprop":false,"split_accumulator_dgrad":true,)"
            R"("split_accumulator_wgrad":true,"backward_override":"none","quantized_model_init":false})");
  EXPECT_EQ(
      defaultsOf("Float8CurrentScaling"),
      R"({"fp8_format":"HYBRID","use_power_2_scales":false,"amax_epsilon_input":0.0,"amax_epsilon_weight":0.0,)"
      R"("amax_epsilon_grad_output":0.0,"fp8_dpa":false,"fp8_mha":false,"split_accumulator_fprop":false,)"
      R"("split_accumulator_dgrad":true,"split_accumulator_wgrad":true,"backward_override":"none","quantized_model_init":false})");
  EXPECT_EQ(
      defaultsOf("Float8BlockScaling"),
      R"({"fp8_format":"E4M3","use_power_2_scales":true,"x_block_scaling_dim":1,"w_block_scaling_dim":2,)"
      R"("grad_block_scaling_dim":1,"amax_epsilon_input":0.0,"amax_epsilon_weight":0.0,)"
      R"("amax_epsilon_grad_output":0.0,"fp8_dpa":false,"fp8_mha":false,"split_accumulator_fprop":true,)"
      R"("split_accumulator_dgrad":true,"split_accumulator_wgrad":true,"backward_override":"none","quantized_model_init":false})");
  EXPECT_EQ(defaultsOf("MXFP8BlockScaling"),
            R"({"fp8_format":"E4M3","enable_2d_quantization":false,"fp8_dpa":false,"fp8_mha":false,)"
            R"("backward_override":"none","quantized_model_init":false})");
  EXPECT_EQ(defaultsOf("NVFP4BlockScaling"),
            R"({"fp4_format":"E2M1","fp8_format":"E4M3","disable_rht":false,"disable_stochastic_rounding":false,)"
            R"("disable_2d_quantization":false,"row_scaled_activation":false,"nvfp4_4over6":"none",)"
            R"("nvfp4_4over6_e4m3_use_256":"all","nvfp4_4over6_err_mode":"MAE","fp8_dpa":false,"fp8_mha":false,)"
            R"("backward_override":"none","quantized_model_init":false})");
}

constexpr OperandRole kInput = {TensorType::Input, GemmRole::Fprop};
constexpr OperandRole kWeight = {TensorType::Weight, GemmRole::Dgrad};
constexpr OperandRole kGrad = {TensorType::GradOutput, GemmRole::Wgrad};

TEST(Recipes, SayHowEachOperandIsQuantized) {
  EXPECT_EQ(recipeOf("None").quantizerFor(kInput), std::nullopt);
  const Recipe delayed = recipeOf("DelayedScaling");
  EXPECT_EQ(delayed.quantizerFor(kInput), (QuantizerSpec{.format = ElementFormat::E4M3, .isDelayed = true}));
  EXPECT_EQ(delayed.quantizerFor(kGrad), (QuantizerSpec{.format = ElementFormat::E5M2, .isDelayed = true}));
  const Recipe block = recipeOf("Float8BlockScaling");
  EXPECT_EQ(block.quantizerFor(kInput),
            (QuantizerSpec{.scaling = Scaling::Block1x128, .scale = {.isPowerOfTwo = true}}));
  EXPECT_EQ(block.quantizerFor(kWeight),
            (QuantizerSpec{.scaling = Scaling::Block128x128, .scale = {.isPowerOfTwo = true}}));
  EXPECT_EQ(recipeOf("MXFP8BlockScaling").quantizerFor(kWeight), (QuantizerSpec{.scaling = Scaling::Mx1x32}));
}

// Input: transform, no stochastic rounding, 1-D. Weight: 2-D only. Gradient: transform and stochastic rounding.
TEST(Recipes, Nvfp4TreatsEveryRoleInItsOwnWay) {
  const Recipe recipe = recipeOf("NVFP4BlockScaling");
  const QuantizerSpec plain = {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16};
  QuantizerSpec input = plain;
  input.transformsColumnwise = true;
  QuantizerSpec grad = input;
  grad.roundsStochastically = true;
  QuantizerSpec weight = plain;
  weight.scaling = Scaling::Nv16x16;
  EXPECT_EQ(recipe.quantizerFor(kInput), input);
  EXPECT_EQ(recipe.quantizerFor(kGrad), grad);
  EXPECT_EQ(recipe.quantizerFor(kWeight), weight);
}

// y = x w^T contracts columns of both; dx = dy w rows of w; dw = dy^T x rows of both.
TEST(Recipes, EachGemmReadsItsCopy) {
  std::string directions;
  for (const OperandRole role : operandRoles())
    directions += std::string(roleName(role.gemm)) + " " + std::string(roleName(role.tensor)) + " " +
                  std::string(directionName(directionOf(role))) + "\n";
  EXPECT_EQ(directions,
            "fprop input rowwise\nfprop weight rowwise\ndgrad grad_output rowwise\ndgrad weight columnwise\n"
            "wgrad grad_output columnwise\nwgrad input columnwise\n");
}

TEST(Recipes, SayWhatHardwareTheyNeed) {
  const auto text = [](const char* name) { return hardwareText(*findRecipe(name)); };
  EXPECT_EQ(text("None"), "needs no minimum compute capability");
  EXPECT_EQ(text("DelayedScaling"), "needs compute capability 8.9 (sm_89) or newer");
  EXPECT_EQ(text("Float8CurrentScaling"), "needs compute capability 8.9 (sm_89) or newer");
  EXPECT_EQ(text("Float8BlockScaling"), "needs compute capability 9.0 (sm_90) or newer");
  EXPECT_EQ(text("MXFP8BlockScaling"), "needs compute capability 10.0 (sm_100) or newer");
  EXPECT_EQ(text("NVFP4BlockScaling"), "needs compute capability 10.0 (sm_100) or newer");
  const auto supported = [](const char* name, ComputeCapability device) {
    return supports(*Recipe::create(*findRecipe(name)), device);
  };
  EXPECT_TRUE(supported("Float8BlockScaling", {9, 0}));
  EXPECT_TRUE(supported("Float8BlockScaling", {10, 0}));
  EXPECT_TRUE(supported("MXFP8BlockScaling", {10, 3}));
  EXPECT_TRUE(supported("MXFP8BlockScaling", {12, 0}));
  EXPECT_TRUE(supported("DelayedScaling", {8, 9}));
  EXPECT_FALSE(supported("DelayedScaling", {8, 6}));
  EXPECT_EQ(recipesFor({8, 0}), std::vector<std::string>{"None"});
  EXPECT_EQ(recipesFor({8, 9}), (std::vector<std::string>{"None", "DelayedScaling", "Float8CurrentScaling"}));
  EXPECT_EQ(supported("NVFP4BlockScaling", {9, 0}).reason(),
            "NVFP4BlockScaling needs compute capability 10.0 (sm_100) or newer, but this device has 9.0 (sm_90). Valid "
            "values: None, DelayedScaling, Float8CurrentScaling, Float8BlockScaling.");
}

/// After Hopper, blocks of 128 are multiplied as MXFP8 blocks, with scales that are powers of two.
TEST(Recipes, SayWhichFieldsTheHardwareCannotTake) {
  Attributes fields;
  fields.set("use_power_2_scales", false);
  const Recipe recipe = *Recipe::create(*findRecipe("Float8BlockScaling"), fields);
  EXPECT_TRUE(supports(recipe, {9, 0}));
  EXPECT_EQ(supports(recipe, {10, 0}).reason(),
            "use_power_2_scales is false, but this device has 10.0 (sm_100), which multiplies only blocks whose scales "
            "are powers of two; set it to true.");
}

Result<Recipe> parsed(const std::string& text) { return recipeFromJson(*parseJson(text)); }

std::string refusal(const std::string& text) {
  const Result<Recipe> recipe = parsed(text);
  return recipe ? "no error" : recipe.error().message;
}

std::string refusalOfField(const std::string& recipe, const std::string& field) {
  return refusal(R"({"name": ")" + recipe + R"(", "fields": {)" + field + "}}");
}

TEST(RecipeJson, RefusesWithASentence) {
  EXPECT_EQ(refusal("[]"), "/recipe: expected an object, found [].");
  EXPECT_EQ(refusal(R"({"name": "MXFP8Scaling"})"),
            "/recipe/name: there is no recipe 'MXFP8Scaling'; did you mean MXFP8BlockScaling?");
  EXPECT_EQ(refusalOfField("DelayedScaling", R"("margn": 1)"),
            "DelayedScaling: there is no field margn. Did you mean margin?");
  EXPECT_NE(refusalOfField("DelayedScaling", R"("margin": 18446744073709551610)"), "no error") << "it is not -6";
  EXPECT_EQ(refusalOfField("DelayedScaling", R"("margin": "two")"),
            "DelayedScaling: margin is two, but must be of type integer.");
  EXPECT_EQ(refusalOfField("DelayedScaling", R"("margin": [1])"),
            "/recipe/fields/margin: expected true, false, a number or a text.");
  EXPECT_EQ(refusalOfField("DelayedScaling", R"("amax_history_len": 0)"),
            "DelayedScaling: amax_history_len is 0, but must be at least 1.");
  EXPECT_EQ(refusalOfField("DelayedScaling", R"("fp8_format": "E5M2")"),
            "DelayedScaling: fp8_format is 'E5M2', but must be one of HYBRID, E4M3.");
  EXPECT_EQ(refusalOfField("DelayedScaling", R"("backward_override": "dequantized")"),
            "DelayedScaling: backward_override is 'dequantized', but must be 'none', because the backward GEMMs record "
            "the amax of gradients.");
  EXPECT_EQ(refusalOfField("Float8BlockScaling", R"("x_block_scaling_dim": 2)"),
            "Float8BlockScaling: x_block_scaling_dim and w_block_scaling_dim are both 2, but only one operand of a "
            "GEMM may have blocks of 128 x 128; set one of them to 1.");
  EXPECT_EQ(refusalOfField("Float8BlockScaling", R"("split_accumulator_fprop": false)"),
            "Float8BlockScaling: split_accumulator_fprop is false, but GEMMs with block scales always use split "
            "accumulators. Set it to true.");
  EXPECT_EQ(refusalOfField("Float8BlockScaling", R"("fp8_dpa": true)"),
            "Float8BlockScaling: fp8_dpa is true, but attention with block scales is not supported. Set it to false.");
  EXPECT_EQ(refusalOfField("NVFP4BlockScaling", R"("nvfp4_4over6": "all")"),
            "NVFP4BlockScaling: nvfp4_4over6 is 'all', but activations use the random Hadamard transform, for which "
            "TransformerEngine raises. Set disable_rht to true, or nvfp4_4over6 to 'weights'.");
  EXPECT_EQ(refusalOfField("NVFP4BlockScaling", R"("row_scaled_activation": true)"),
            "NVFP4BlockScaling: row_scaled_activation is true, but activations use the random Hadamard transform, for "
            "which TransformerEngine raises. Set disable_rht to true.");
}

std::string refusalOfOverride(const std::string& recipe, const std::string& special) {
  return refusal(R"({"name": ")" + recipe + R"(", "overrides": [{)" + special + "}]}");
}

TEST(RecipeOverrides, AreRefusedWithASentence) {
  EXPECT_EQ(refusalOfOverride("DelayedScaling", R"("tensor": "output", "format": "e4m3")"),
            "/recipe/overrides/0/tensor: 'output' is not a role. Valid values: input, weight, grad_output.");
  EXPECT_EQ(refusalOfOverride("DelayedScaling", R"("format": "e3m4")"),
            "/recipe/overrides/0/format: 'e3m4' is not a format. Valid values: e4m3, e5m2, e2m1, high_precision.");
  EXPECT_EQ(refusalOfOverride("DelayedScaling", R"("tensor": "weight", "gemm": "wgrad", "format": "e4m3")"),
            "DelayedScaling: the override for weight of wgrad matches no operand of a GEMM.");
  EXPECT_EQ(refusalOfOverride("DelayedScaling", R"("gemm": "fprop", "format": "e2m1")"),
            "DelayedScaling: the override for every tensor of fprop sets e2m1, but its scaling per_tensor supports "
            "e4m3 and e5m2.");
  EXPECT_EQ(refusalOfOverride("None", R"("tensor": "input", "format": "e4m3")"),
            "None: the override for input of every GEMM sets e4m3, but this recipe does not quantize it.");
  EXPECT_EQ(refusalOfOverride("DelayedScaling", R"("tensor": "input", "format": "e5m2")"),
            "DelayedScaling: both operands of wgrad would be e5m2, which no GEMM supports. Set one to e4m3.");
}

TEST(RecipeOverrides, ChangeWhatTheyMatch) {
  const Recipe recipe = *parsed(
      R"({"name": "Float8CurrentScaling", "overrides": [{"gemm": "wgrad", "format": "high_precision"},
          {"tensor": "grad_output", "gemm": "dgrad", "format": "e4m3"}]})");
  EXPECT_EQ(recipe.quantizerFor(kGrad), std::nullopt);
  EXPECT_EQ(recipe.quantizerFor({TensorType::GradOutput, GemmRole::Dgrad})->format, ElementFormat::E4M3);
  EXPECT_EQ(recipe.quantizerFor(kInput)->format, ElementFormat::E4M3);
}

TEST(Recipes, ABackwardOverrideLeavesBackwardUnquantized) {
  for (const char* name : {"Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling", "NVFP4BlockScaling"}) {
    Attributes fields;
    fields.set("backward_override", std::string("high_precision"));
    const Recipe recipe = *Recipe::create(*findRecipe(name), fields);
    for (const OperandRole role : operandRoles())
      EXPECT_EQ(recipe.quantizerFor(role).has_value(), role.gemm == GemmRole::Fprop) << name;
  }
}

/// A value that the field accepts.
AttributeValue arbitraryValue(const AttributeSpec& spec) {
  if (spec.type == AttributeType::Boolean) return *rc::gen::arbitrary<bool>();
  if (spec.type == AttributeType::Text) return *rc::gen::elementOf(spec.choices);
  const auto low = static_cast<std::int64_t>(*spec.minimum);
  const auto high = static_cast<std::int64_t>(std::min(*spec.maximum, 1e6));
  const std::int64_t value = *rc::gen::inRange(low, high + 1);
  if (spec.type == AttributeType::Integer) return value;
  return static_cast<double>(value) / 7;
}

TEST(RecipeJson, ReadsWhatItWrote) {
  EXPECT_TRUE(rc::check([] {
    const RecipeDefinition& definition = **rc::gen::map(rc::gen::inRange<std::size_t>(0, builtinRecipes().size()),
                                                        [](std::size_t i) { return &builtinRecipes()[i]; });
    Attributes fields;
    for (const AttributeSpec& spec : definition.fields)
      if (*rc::gen::arbitrary<bool>()) fields.set(spec.name, arbitraryValue(spec));
    std::vector<RoleOverride> overrides;
    if (*rc::gen::arbitrary<bool>()) overrides.push_back({.tensor = TensorType::Weight, .gemm = GemmRole::Dgrad});
    const Result<Recipe> recipe = Recipe::create(definition, fields, overrides);
    if (!recipe) RC_DISCARD("refused");
    const Result<Recipe> back = parsed(toJson(*recipe).dump());
    RC_ASSERT(back.hasValue());
    RC_ASSERT(*back == *recipe);
    RC_ASSERT(toJson(*back) == toJson(*recipe));
  }));
}

}  // namespace
}  // namespace fuseline
