// FP8 attention: which tensors a recipe with fp8_dpa quantizes, and what it says where it cannot.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/plan/analysis.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

Analysis analysisOf(const char* recipe, const char* attributes = "") {
  const LoadedDocument loaded = parseDocument(fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}}, "recipe": {{{}}},
           "pipeline": {{"inputs": [{{"id": "x", "dtype": "bf16", "shape": [64, 2, 64]}}],
             "ops": [{{"id": "attn", "op": "DotProductAttention", "attributes": {{"num_attention_heads": 4,
               "kv_channels": [16]{}}}}}],
             "wires": [["x", "attn.x"], ["x", "attn.k"], ["x", "attn.v"]],
             "outputs": [{{"id": "y", "from": "attn.y"}}]}}}})",
      recipe, attributes));
  return analyze(loaded.document);
}

std::string noteOf(const char* recipe, const char* attributes = "") {
  std::string notes;
  for (const Diagnostic& diagnostic : analysisOf(recipe, attributes).lowered.diagnostics)
    if (diagnostic.code == kAttentionCode) notes += diagnostic.node + ": " + diagnostic.message;
  return notes;
}

/// The dtype or format of each operand that the steps of the attention itself read.
std::vector<std::string> readForms(const Plan& plan, Phase phase) {
  std::vector<std::string> forms;
  for (const Step& step : plan.steps)
    for (const StepOperand& operand : step.operands)
      if (step.name == "attn" && step.phase == phase && operand.access == OperandAccess::Read) {
        const TensorSpec& spec = plan.spec(operand);
        forms.emplace_back(spec.quantized ? formatName(spec.quantized->format) : dtypeName(spec.dtype));
      }
  std::ranges::sort(forms);
  return forms;
}

using Forms = std::vector<std::string>;

TEST(AttentionRecipe, QuantizesQueriesKeysValuesAndTheGradient) {
  const Analysis analysis = analysisOf(R"("name": "Float8CurrentScaling", "fp8_dpa": true)");
  const Plan& plan = analysis.unfusedPlan();
  EXPECT_EQ(plan.steps.front().name, "quantize(attn.x, attn.k, attn.v)");
  EXPECT_EQ(readForms(plan, Phase::Forward), (Forms{"e4m3", "e4m3", "e4m3"}));
  EXPECT_EQ(readForms(plan, Phase::Backward), (Forms{"bf16", "e4m3", "e4m3", "e4m3", "e5m2", "f32"})) << "y and lse";
  EXPECT_EQ(noteOf(R"("name": "Float8CurrentScaling", "fp8_dpa": true)"), "");
}

TEST(AttentionRecipe, HasOneScaleForQueriesKeysAndValues) {
  const Analysis analysis = analysisOf(R"("name": "DelayedScaling", "fp8_dpa": true)");
  const std::vector<QuantizerState> states = quantizerStates(analysis.graph());
  ASSERT_EQ(states.size(), 2U);
  EXPECT_TRUE(states[0].scaleName.ends_with("/attn/forward/input.scale")) << states[0].scaleName;
  EXPECT_TRUE(states[1].scaleName.ends_with("/attn/backward/grad_output.scale")) << states[1].scaleName;
}

TEST(AttentionRecipe, ComputesBackwardInHighPrecisionIfItIsOverridden) {
  const auto formsUnder = [](const char* backward) {
    const std::string recipe =
        fmt::format(R"("name": "Float8CurrentScaling", "fp8_dpa": true, "backward_override": "{}")", backward);
    return readForms(analysisOf(recipe.c_str()).unfusedPlan(), Phase::Backward);
  };
  EXPECT_EQ(formsUnder("dequantized"), (Forms{"bf16", "bf16", "e4m3", "e4m3", "e4m3", "f32"}));
  EXPECT_EQ(formsUnder("high_precision"), (Forms{"bf16", "bf16", "bf16", "bf16", "bf16", "f32"}));
}

TEST(AttentionRecipe, SaysWhyAttentionStaysInHighPrecision) {
  constexpr const char* kCurrent = R"("name": "Float8CurrentScaling", "fp8_dpa": true)";
  EXPECT_EQ(noteOf(kCurrent, R"(, "softcap": 2.0)"),
            "attn: fp8_dpa is on, but attn computes in bf16: FP8 attention supports no softcap.");
  EXPECT_NE(noteOf(R"("name": "MXFP8BlockScaling", "fp8_dpa": true)").find("no MXFP8 attention"), std::string::npos);
  EXPECT_NE(noteOf(R"("name": "DelayedScaling", "fp8_mha": true)").find("fp8_mha is on, but Fuseline ignores it"),
            std::string::npos);
  EXPECT_EQ(noteOf(R"("name": "Float8CurrentScaling")"), "");
}

}  // namespace
}  // namespace fuseline
