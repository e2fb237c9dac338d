// CustomRecipe: quantizers by tensor, GEMM and op, valid pairs of operands, and settings of the command line.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/operand_setting.h"

#include "core/support/json_fields.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

constexpr const char* kPrefix = R"({"name": "CustomRecipe", "overrides": [)";

Result<Recipe> customOf(const std::string& overrides) { return recipeFromJson(*parseJson(kPrefix + overrides + "]}")); }

std::string refusalOf(const std::string& overrides) {
  const Result<Recipe> recipe = customOf(overrides);
  return recipe ? "no error" : recipe.error().message;
}

Recipe withFactory(const std::string& factory) {
  Attributes fields;
  fields.set("qfactory", factory);
  return *Recipe::create(*findRecipe("CustomRecipe"), fields);
}

std::string scalingsOf(const Recipe& recipe, const std::string& op = "") {
  std::string text;
  for (const OperandRole role : operandRoles()) {
    const auto spec = recipe.quantizerFor(role, [&](const std::string& place) { return place == op; });
    text += spec ? traitsOf(spec->scaling).name : "-";
    text += spec && spec->isOfRowwise ? "~ " : " ";
  }
  return text;
}

// Source: TransformerEngine 2.20.2, custom_recipes/quantizer_factory_zoo.py.
TEST(CustomRecipe, HasTheFactoriesOfTransformerEngine) {
  EXPECT_EQ(scalingsOf(withFactory("high_precision_factory")), "- - - - - - ");
  EXPECT_EQ(scalingsOf(withFactory("high_precision_fwd_mxfp8_bwd_factory")), "- - mx_1x32 mx_1x32 mx_1x32 mx_1x32 ");
  EXPECT_EQ(scalingsOf(withFactory("mxfp8_fwd_nvfp4_bwd_factory")),
            "mx_1x32 mx_1x32 nv_1x16 nv_1x16~ nv_1x16 nv_1x16 ");
  EXPECT_EQ(scalingsOf(withFactory("nvfp4_1d_weight_factory")), "nv_1x16 nv_1x16 nv_1x16 nv_1x16~ nv_1x16 nv_1x16 ");
  EXPECT_EQ(scalingsOf(withFactory("nvfp4_linear_fp8_dpa_factory")), scalingsOf(withFactory("nvfp4_factory")));
  const Recipe rl = withFactory("mxfp8_fwd_high_precision_bwd_factory");
  EXPECT_EQ(scalingsOf(rl), "mx_1x32 mx_1x32 - - - - ");
  EXPECT_TRUE(rl.isDequantized({TensorType::Weight, GemmRole::Dgrad}));
  EXPECT_FALSE(rl.isDequantized({TensorType::GradOutput, GemmRole::Dgrad}));
  const Recipe rows = withFactory("nvfp4_row_scaled_fwd_high_precision_bwd_factory");
  EXPECT_EQ(scalingsOf(rows), "nv_row_1x16 nv_1x16 - - - - ");
  EXPECT_TRUE(rows.isDequantized({TensorType::Input, GemmRole::Wgrad}));
}

TEST(CustomRecipe, MixesScalingsByTensorAndOp) {
  const Recipe recipe = *customOf(
      R"({"quantizer": "MXFP8BlockScaling"},
         {"op": "fc2", "quantizer": {"name": "Float8CurrentScaling", "fp8_format": "E4M3"}},
         {"op": "fc3", "gemm": "wgrad", "format": "high_precision"})");
  EXPECT_EQ(scalingsOf(recipe), "mx_1x32 mx_1x32 mx_1x32 mx_1x32 mx_1x32 mx_1x32 ");
  EXPECT_EQ(scalingsOf(recipe, "fc2"), "per_tensor per_tensor per_tensor per_tensor per_tensor per_tensor ");
  EXPECT_EQ(scalingsOf(recipe, "fc3"), "mx_1x32 mx_1x32 mx_1x32 mx_1x32 - - ");
  EXPECT_EQ(*recipeFromJson(toJson(recipe)), recipe);
}

TEST(CustomRecipe, RefusesProductsThatTransformerEngineRaisesOn) {
  EXPECT_EQ(refusalOf(R"({"quantizer": "MXFP8BlockScaling"}, {"tensor": "weight", "quantizer": "NVFP4BlockScaling"})"),
            "CustomRecipe: fprop would multiply the input in mx_1x32 by the weight in nv_16x16. TransformerEngine's "
            "GEMM raises, because one GEMM cannot apply two kinds of scales. Use the same scaling for both.");
  EXPECT_EQ(
      refusalOf(R"({"tensor": "input", "gemm": "fprop", "quantizer": "MXFP8BlockScaling"})"),
      "CustomRecipe: fprop would multiply the input in mx_1x32 by the weight in high precision. TransformerEngine's "
      "GEMM raises, because either both operands or none must be quantized. Quantize both, or neither.");
  EXPECT_EQ(refusalOf(R"({"quantizer": "NVFP4BlockScaling"},
                         {"tensor": "input", "quantizer": {"name": "NVFP4BlockScaling", "disable_rht": true}})"),
            "CustomRecipe: only one operand of wgrad would have the random Hadamard transform, so TransformerEngine's "
            "result would be wrong. Set disable_rht to the same value for both.");
  EXPECT_EQ(refusalOf(R"({"quantizer": "DelayedScaling"}, {"gemm": "wgrad", "format": "high_precision"})"),
            "CustomRecipe: only one of the rowwise and columnwise input uses DelayedScaling, for which "
            "TransformerEngine's HybridQuantizer raises. Use it for both, or for neither.");
}

/// Scales of a whole tensor can be multiplied, independent of their origin.
TEST(CustomRecipe, MultipliesDelayedByCurrentScaling) {
  EXPECT_EQ(refusalOf(R"({"quantizer": "DelayedScaling"}, {"tensor": "weight", "quantizer": "Float8CurrentScaling"})"),
            "no error");
  EXPECT_EQ(refusalOf(R"({"quantizer": {"name": "Float8BlockScaling", "w_block_scaling_dim": 1}},
                         {"tensor": "weight", "quantizer": "Float8BlockScaling"})"),
            "no error");
}

TEST(CustomRecipe, NeedsTheGpuOfItsScalings) {
  EXPECT_TRUE(supports(withFactory("current_scaling_factory"), {9, 0}));
  EXPECT_TRUE(supports(withFactory("mxfp8_factory"), {10, 0}));
  EXPECT_EQ(
      supports(withFactory("mxfp8_factory"), {9, 0}).reason(),
      "CustomRecipe quantizes the input of fprop with scaling mx_1x32, which needs compute capability 10.0 (sm_100) "
      "or newer, but this device has 9.0 (sm_90).");
}

TEST(OperandSettings, NameAnOperandAndItsQuantizer) {
  EXPECT_TRUE(isOperandKey("weight"));
  EXPECT_TRUE(isOperandKey("block.fc1.grad_output.dgrad"));
  EXPECT_FALSE(isOperandKey("margin"));
  const RoleOverride special = *parseOperandSetting("block.fc1.weight.dgrad", "~mxfp8(fp8_format=HYBRID)");
  EXPECT_EQ(special.op, "block.fc1");
  EXPECT_EQ(special.tensor, TensorType::Weight);
  EXPECT_EQ(special.gemm, GemmRole::Dgrad);
  EXPECT_TRUE(special.isOfRowwise);
  EXPECT_EQ(special.quantizer->fields.text("fp8_format"), "HYBRID");
  EXPECT_EQ(parseOperandSetting("all.wgrad", "high_precision")->gemm, GemmRole::Wgrad);
  EXPECT_EQ(
      parseOperandSetting("weight", "int8").error().message,
      "weight is 'int8': there is no recipe 'int8'; `fuseline recipes` lists them. Valid values: e4m3, e5m2, e2m1, "
      "high_precision, or a recipe, as in mxfp8 or float8current(fp8_format=E4M3).");
}

TEST(OperandSettings, AreWrittenAsTheyAreRead) {
  for (const char* text : {"high_precision", "e5m2", "MXFP8BlockScaling", "~NVFP4BlockScaling(disable_rht=true)",
                           "Float8CurrentScaling(fp8_format=E4M3)"})
    EXPECT_EQ(operandSettingText(toJson(*parseOperandSetting("weight.dgrad", text))), text);
  EXPECT_EQ(operandSettingText(Json("fc1")), "\"fc1\"");
  EXPECT_EQ(operandSettingText(Json{{"quantizer", {{"name", 7}, {"margin", nullptr}}}}), "7(margin=null)");
}

TEST(OperandSettings, StandBesideFields) {
  const Result<Recipe> recipe = recipeWithSettings(
      *findRecipe("CustomRecipe"), {{"qfactory", "mxfp8_factory"}, {"fc2.all.wgrad", "high_precision"}});
  ASSERT_TRUE(recipe.hasValue());
  EXPECT_EQ(scalingsOf(*recipe, "fc2"), "mx_1x32 mx_1x32 mx_1x32 mx_1x32 - - ");
}

}  // namespace
}  // namespace fuseline
