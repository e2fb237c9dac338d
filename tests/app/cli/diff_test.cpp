// fuseline diff: changes between two files, and their effects on the plans.
// SPDX-License-Identifier: Apache-2.0
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

/// The sample with something in place of something else.
std::string changedSample(const TemporaryFolder& folder, const std::string& what, const std::string& into) {
  std::string text = readText(goldenPath("sample.fuseline"));
  text.replace(text.find(what), what.size(), into);
  writeText(folder / "changed.fuseline", text);
  return quoted(folder / "changed.fuseline");
}

TEST(Diff, ShowsWhatChangedAndWhatThePlansMakeOfIt) {
  const TemporaryFolder folder;
  const std::string next = changedSample(folder, R"("id": "act", "op": "GELU")", R"("id": "act", "op": "Identity")");
  const ProgramResult result = fuseline("diff --device reference " + samplePipeline() + " " + next);
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "ops\n  ~ act  op \"GELU\" -> \"Identity\"\n")) << result.out;
  EXPECT_TRUE(has(result.out, "fused plan, backward\n")) << result.out;
  EXPECT_TRUE(has(result.out, "  - BackwardActivationLinear (act, fc2)\n  + Identity (act)\n")) << result.out;
  EXPECT_TRUE(has(result.out, "peak memory")) << result.out;
  EXPECT_EQ(fuseline("diff --exit-code --device reference " + samplePipeline() + " " + next).exitCode, 5);
}

TEST(Diff, SaysWhereThereIsNone) {
  const TemporaryFolder folder;
  const std::string moved =
      changedSample(folder, R"("symbols")", R"("view": {"positions": {"act": [1, 2]}}, "symbols")");
  const std::string files = " --device reference " + samplePipeline() + " " + moved;
  const ProgramResult result = fuseline("diff --exit-code" + files);
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_TRUE(result.out.starts_with("No difference between ")) << result.out;
  const ProgramResult viewed = fuseline("diff --view --exit-code" + files);
  EXPECT_EQ(viewed.exitCode, 5);
  EXPECT_TRUE(has(viewed.out, "view\n  + act  [1,2]\n")) << viewed.out;
}

TEST(Diff, ComparesWhatThePlanCannotBeMadeOf) {
  const TemporaryFolder folder;
  const std::string next = changedSample(folder, R"("op": "GELU")", R"("op": "GELUU")");
  const ProgramResult result = fuseline("diff --device reference " + samplePipeline() + " " + next);
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "\"GELU\" -> \"GELUU\"")) << result.out;
  EXPECT_TRUE(has(result.out, "so it has no plan. `fuseline validate ")) << result.out;
  EXPECT_EQ(fuseline("diff " + samplePipeline() + " /no/such/file").exitCode, 1);
}

TEST(Diff, MeasuresBothInTurns) {
  const TemporaryFolder folder;
  const std::string next = changedSample(folder, R"("id": "act", "op": "GELU")", R"("id": "act", "op": "Identity")");
  const std::string call = "diff --device reference --iterations 6 " + samplePipeline() + " " + next;
  const ProgramResult result = fuseline(call + " --measure");
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "end to end, fused\n")) << result.out;
  EXPECT_TRUE(has(result.out, "Medians of interleaved rounds")) << result.out;
  EXPECT_TRUE(has(result.out, " gone.\n")) << result.out;
  // Without the GELU its input is not kept for backward any more.
  const ProgramResult gated = fuseline(call + " --measure --fail-if 'saved<-10%' --fail-if 'peak>+10%'");
  EXPECT_EQ(gated.exitCode, 5) << gated.out;
  EXPECT_TRUE(has(gated.out, "FAILED saved<-10%: ")) << gated.out;
  EXPECT_TRUE(has(gated.out, "passed peak>+10%: ")) << gated.out;
}

TEST(Diff, RefusesWhatItCouldNotMeasureBeforeItMeasures) {
  const std::string call = "diff --device reference --measure " + samplePipeline() + " " + samplePipeline();
  for (const char* option : {" --fail-if 'speedup<-5%'", " --fail-if 'unfused>+5%'", " --ranks 8"}) {
    const ProgramResult result = fuseline(call + option);
    EXPECT_EQ(result.exitCode, 2) << option;
    EXPECT_EQ(result.out, "") << option;
  }
  const ProgramResult measured = fuseline("diff --measured a.fuserun " + samplePipeline() + " " + samplePipeline());
  EXPECT_EQ(measured.exitCode, 2);
  EXPECT_TRUE(has(measured.err, "--measured: a run belongs to one pipeline")) << measured.err;
}

/// A long measurement is not lost because of a gate that requires more rounds.
TEST(Diff, ShowsWhatItMeasuredWhereAGateCannotJudge) {
  const ProgramResult result = fuseline("diff --device reference --measure --iterations 2 --fail-if 'median>+5%' " +
                                        samplePipeline() + " " + samplePipeline());
  EXPECT_EQ(result.exitCode, 1) << result.err;
  EXPECT_TRUE(has(result.out, "end to end, fused\n")) << result.out;
}

TEST(Diff, MeasuresOnlyWhatCanRun) {
  const TemporaryFolder folder;
  const std::string broken = changedSample(folder, R"("op": "GELU")", R"("op": "GELUU")");
  const ProgramResult result = fuseline("diff --device reference --measure " + samplePipeline() + " " + broken);
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.err, "--measure: ") && has(result.err, "GELUU")) << result.err;
  const ProgramResult ungated = fuseline("diff --fail-if 'median>+5%' " + samplePipeline() + " " + samplePipeline());
  EXPECT_EQ(ungated.exitCode, 2);
  EXPECT_TRUE(has(ungated.err, "add --measure")) << ungated.err;
}

}  // namespace
}  // namespace fuseline::testing
