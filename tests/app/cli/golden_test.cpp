// Output of verbs for people, word by word. FUSELINE_UPDATE_GOLDEN=1 writes the files anew: read the difference.
// SPDX-License-Identifier: Apache-2.0
#include "tests/app/cli/program.h"

#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

void expectGolden(const std::string& text, const std::string& name) {
  if (std::getenv("FUSELINE_UPDATE_GOLDEN")) writeText(goldenPath(name), text);
  EXPECT_EQ(text, readText(goldenPath(name))) << "tests/golden/cli/" << name;
}

TEST(Golden, OpsByCategory) { expectGolden(fuseline("ops").out, "ops.txt"); }
TEST(Golden, OneOp) { expectGolden(fuseline("ops RMSNorm").out, "ops_rmsnorm.txt"); }
TEST(Golden, OneOpThatAttributesDefine) { expectGolden(fuseline("ops Formula").out, "ops_formula.txt"); }
TEST(Golden, OneOpOfManyParameters) { expectGolden(fuseline("ops GroupedLinear").out, "ops_grouped_linear.txt"); }
TEST(Golden, RulesByPass) { expectGolden(fuseline("rules").out, "rules.txt"); }
TEST(Golden, OneRule) { expectGolden(fuseline("rules ForwardLinearBiasAdd").out, "rules_forward_linear_bias_add.txt"); }

TEST(Golden, RulesInAPipeline) {
  expectGolden(fuseline("rules --device reference --bandwidth 100 --launch 5 --in " + samplePipeline()).out,
               "rules_in.txt");
}

TEST(Golden, OneRuleInAPipeline) {
  expectGolden(fuseline("rules BackwardLinearBias --device reference --in " + samplePipeline()).out,
               "rules_in_backward_linear_bias.txt");
}

TEST(Golden, ExportToInspect) {
  expectGolden(
      fuseline("export --device reference --to dlfw-inspect --recipe MXFP8BlockScaling --set M=32 --set H=32 " +
               samplePipeline())
          .out,
      "export_inspect.yaml");
}

TEST(Golden, Infer) { expectGolden(fuseline("infer --device reference " + samplePipeline()).out, "infer.txt"); }

TEST(Golden, InferForward) {
  expectGolden(fuseline("infer --device reference --pass forward --set M=6 " + samplePipeline()).out,
               "infer_forward.txt");
}

TEST(Golden, FuseAsTree) { expectGolden(fuseline("fuse --device reference " + samplePipeline()).out, "fuse.txt"); }

TEST(Golden, FuseAsDot) {
  expectGolden(fuseline("fuse --device reference --format dot " + samplePipeline()).out, "fuse.dot");
}

TEST(Golden, FuseStageByStage) {
  std::string text;
  for (const char* stage : {"lowered", "joint", "forward", "backward", "plan", "memory", "programs"})
    text += fmt::format("== {}\n{}", stage,
                        fuseline(fmt::format("fuse --device reference --stage {} ", stage) + samplePipeline()).out);
  expectGolden(text, "fuse_stages.txt");
}

TEST(Golden, ExportToTransformerEngine) {
  expectGolden(fuseline("export --device reference --to te " + samplePipeline()).out, "export_te.txt");
}

TEST(Golden, Explain) { expectGolden(fuseline("explain --device reference " + samplePipeline()).out, "explain.txt"); }

TEST(Golden, ExplainOneOp) {
  expectGolden(fuseline("explain --device reference " + samplePipeline() + " fc2").out, "explain_fc2.txt");
}

// A nested Sequential, named communicators, weight gradients that wait.
TEST(Golden, ExplainTheBorderOfANestedSequential) {
  expectGolden(fuseline("explain --device reference " + goldenPath("nested.fuseline").string() + " first").out,
               "explain_nested.txt");
}

TEST(Golden, PlanWithDelayedWeightGradients) {
  expectGolden(fuseline("fuse --device reference --stage plan " + goldenPath("nested.fuseline").string()).out,
               "plan_nested.txt");
}

TEST(Golden, DiffOfTwoPipelines) {
  expectGolden(
      fuseline("diff --device reference " + samplePipeline() + " " + quoted(goldenPath("nested.fuseline"))).out,
      "diff.txt");
}

// From the files' folder, so that the path in the messages is the same everywhere.
void expectProblems(const std::string& file, const std::string& name) {
  const ProgramResult result = fuseline("validate " + file, {}, goldenPath(file).parent_path());
  EXPECT_EQ(result.exitCode, 1);
  expectGolden(result.out, name);
}

TEST(Golden, Validate) { expectProblems("broken.fuseline", "validate.txt"); }
TEST(Golden, ValidateFormulas) { expectProblems("formula_broken.fuseline", "validate_formula.txt"); }

TEST(Golden, FuseAFormula) {
  expectGolden(fuseline("fuse --device reference " + goldenPath("formula.fuseline").string()).out, "fuse_formula.txt");
}

}  // namespace
}  // namespace fuseline::testing
