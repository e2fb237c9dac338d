// fuseline edit: edits in their order, the changes that they make, and nothing written where one fails.
// SPDX-License-Identifier: Apache-2.0
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

TEST(Edit, WritesTheChangedPipelineAndShowsTheChanges) {
  const TemporaryFolder folder;
  const std::string next = quoted(folder / "next.fuseline");
  const ProgramResult result =
      fuseline("edit " + samplePipeline() + " --replace act=SiLU --insert Identity --after act -o " + next);
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "ops\n")) << result.out;
  EXPECT_TRUE(has(result.out, "  ~ act  op \"GELU\" -> \"SiLU\"\n")) << result.out;
  EXPECT_TRUE(has(result.out, "+ identity")) << result.out;
  const ProgramResult diff = fuseline("diff --device reference --json " + samplePipeline() + " " + next);
  const Json edited =
      fuseline("edit --json --replace act=SiLU --insert Identity --after act " + samplePipeline()).json();
  EXPECT_EQ(edited["changes"], diff.json()["changes"]);
  EXPECT_EQ(edited["text"], readText(folder / "next.fuseline"));
  EXPECT_EQ(fuseline("validate " + next).exitCode, 0);
}

TEST(Edit, PrintsThePipelineWhereNoFileIsNamed) {
  const ProgramResult result = fuseline("edit --delete act " + samplePipeline());
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_FALSE(has(result.out, "\"act\"")) << result.out;
  EXPECT_EQ(Json::parse(result.out)["format"], "fuseline-pipeline");
  EXPECT_TRUE(has(result.err, "  - act")) << result.err;
}

TEST(Edit, OrderOfTheCommandLineCounts) {
  const ProgramResult result = fuseline(
      "edit --rename act=first --set-attribute fc1.bias=false --insert GELU --before first --rename gelu=second "
      "--json " +
      samplePipeline());
  EXPECT_EQ(result.exitCode, 0) << result.err;
  const Json edits = result.json()["edits"];
  ASSERT_EQ(edits.size(), 4U);
  EXPECT_EQ(edits[2]["edit"], "Insert GELU before first");
  EXPECT_EQ(fuseline("edit --insert GELU --before first --rename act=first " + samplePipeline()).exitCode, 1);
}

TEST(Edit, InPlaceAndOnlyWhereAllEditsFit) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "own.fuseline";
  const std::string before = readText(goldenPath("sample.fuseline"));
  writeText(file, before);
  const ProgramResult refused = fuseline("edit --in-place --delete act --connect fc9.y=fc1.x " + quoted(file));
  EXPECT_EQ(refused.exitCode, 1);
  EXPECT_TRUE(has(refused.err, "connect fc9.y=fc1.x: the pipeline has no op or input fc9")) << refused.err;
  EXPECT_TRUE(has(refused.err, "Nothing was written.")) << refused.err;
  EXPECT_EQ(readText(file), before);
  EXPECT_EQ(fuseline("edit --in-place --delete act " + quoted(file)).exitCode, 0);
  EXPECT_NE(readText(file), before);
  EXPECT_EQ(fuseline("edit --delete norm " + quoted(file) + " -o " + quoted(file)).exitCode, 2) << "the file exists";
  EXPECT_EQ(fuseline("edit --in-place --delete norm " + quoted(file) + " -o other.fuseline").exitCode, 2);
}

TEST(Edit, ShowsWhatIsWrongAfterwards) {
  const ProgramResult result = fuseline("edit --set-attribute fc1.in_features=7 " + samplePipeline());
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(result.err, "shape-mismatch")) << result.err;
  EXPECT_TRUE(has(result.out, "\"in_features\": 7")) << result.out;
}

TEST(Edit, SaysHowItIsCalled) {
  const ProgramResult nothing = fuseline("edit " + samplePipeline());
  EXPECT_EQ(nothing.exitCode, 2);
  EXPECT_TRUE(has(nothing.err, "expected an edit")) << nothing.err;
  const ProgramResult loose = fuseline("edit --before fc1 " + samplePipeline());
  EXPECT_EQ(loose.exitCode, 2);
  EXPECT_TRUE(has(loose.err, "expected --insert TYPE before it")) << loose.err;
  EXPECT_EQ(fuseline("edit --insert GELU " + samplePipeline()).exitCode, 2);
}

}  // namespace
}  // namespace fuseline::testing
