// fuseline sweep: a row for every size, even if it fails, and the break-even point of fusing.
// SPDX-License-Identifier: Apache-2.0
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <sstream>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

const std::string kSweep = "sweep --device reference --iterations 3 --warmup 0 ";

TEST(Sweep, MeasuresEverySizeOfTheGrid) {
  const Json json = fuseline(kSweep + "--json --over M=2:8:x2 --over H=8,16 " + samplePipeline()).json();
  ASSERT_EQ(json["rows"].size(), 6u);
  EXPECT_EQ(json["rows"][0]["symbols"], Json({{"M", 2}, {"H", 8}}));
  EXPECT_EQ(json["rows"][4]["symbols"], Json({{"M", 4}, {"H", 16}})) << "the first axis runs fastest";
  for (const Json& row : json["rows"]) EXPECT_EQ(row["measured"]["rounds"], 3) << row;
  ASSERT_EQ(json["breakEvens"].size(), 2u) << "one a value of H";
  EXPECT_EQ(json["breakEvens"][1]["symbols"], Json({{"H", 16}}));
  EXPECT_TRUE(json["breakEvens"][1]["sentence"].get<std::string>().starts_with("H=16: "));
}

/// A config is read like a pipeline file.
TEST(Sweep, MeasuresNumbersOfLayersOfAModel) {
  const TemporaryFolder folder;
  const Json config = {
      {"model_type", "llama"},  {"vocab_size", 5},          {"hidden_size", 8},         {"intermediate_size", 12},
      {"num_hidden_layers", 3}, {"num_attention_heads", 2}, {"num_key_value_heads", 1}, {"max_position_embeddings", 4}};
  writeText(folder / "config.json", config.dump());
  const Json rows = fuseline(kSweep + "--json --over layers=1,3,4 " + quoted(folder / "config.json")).json()["rows"];
  EXPECT_LT(rows[0]["measured"]["unfusedLaunches"], rows[1]["measured"]["unfusedLaunches"]);
  EXPECT_TRUE(has(rows[2]["reason"], "layers is 4, but the pipeline has 3 layers")) << rows[2];
}

// A norm of 8 numbers takes rows of 8 only.
TEST(Sweep, GivesARowToASizeThatDoesNotWork) {
  const TemporaryFolder folder;
  std::string text = readText(goldenPath("sample.fuseline"));
  const std::string exact = R"("normalized_shape": ["H"])";
  text.replace(text.find(exact), exact.size(), R"("normalized_shape": [8])");
  writeText(folder / "fixed.fuseline", text);
  const std::string sweep = kSweep + "--over H=4,8 " + quoted(folder / "fixed.fuseline");
  const ProgramResult shown = fuseline(sweep);
  EXPECT_EQ(shown.exitCode, 0) << shown.err;
  EXPECT_TRUE(has(shown.out, "not measured")) << shown.out;
  EXPECT_TRUE(has(shown.out, "H=4: ")) << shown.out;
  const Json rows = fuseline(sweep + " --json").json()["rows"];
  EXPECT_TRUE(rows[0]["measured"].is_null());
  EXPECT_NE(rows[0]["reason"], "");
  EXPECT_FALSE(rows[1]["measured"].is_null());
  EXPECT_EQ(fuseline(kSweep + "--over H=4,16 " + quoted(folder / "fixed.fuseline")).exitCode, 1) << "none works";
}

TEST(Sweep, RefusesASizeBeyondMemoryByThePlan) {
  const Json rows = fuseline(kSweep + "--json --over M=4,100000000000 " + samplePipeline()).json()["rows"];
  EXPECT_FALSE(rows[0]["measured"].is_null());
  EXPECT_TRUE(has(rows[1]["reason"].get<std::string>(), "the plans need ")) << rows[1];
}

TEST(Sweep, WritesATableAndARunOfEverySize) {
  const TemporaryFolder folder;
  const std::string files = "-o " + quoted(folder / "s.csv") + " --records " + quoted(folder / "runs") + " ";
  const ProgramResult result =
      fuseline(kSweep + files + "--csv --over M=2,4 --over recipe=none,mxfp8 " + samplePipeline());
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_EQ(result.out, readText(folder / "s.csv"));
  EXPECT_TRUE(result.out.starts_with("M,recipe,rounds,unfused_median_ns,")) << result.out;
  EXPECT_TRUE(has(result.out, "\r\n4,None,3,")) << result.out;
  EXPECT_TRUE(has(result.out, "\r\n2,MXFP8BlockScaling,,,")) << "it quantizes nothing at this size\n" << result.out;
  const Json record = Json::parse(readText(folder / "runs" / "sample_M=4_None.fuserun"));
  EXPECT_EQ(record["settings"]["symbols"]["M"], 4);
  EXPECT_FALSE(std::filesystem::exists(folder / "runs" / "sample_M=4_MXFP8BlockScaling.fuserun"));
  const ProgramResult again = fuseline(kSweep + files + "--over M=2 " + samplePipeline());
  EXPECT_EQ(again.exitCode, 2);
  EXPECT_TRUE(has(again.err, "--force overwrites it")) << again.err;
}

TEST(Sweep, RefusesWhatMeansNothing) {
  for (const char* options : {"--over Q=1,2", "--over M=1:2", "--over recipe=none,mxfp8", "--over M=1 --set Q=2",
                              "--over M=1 --recipe none,mxfp8", "--over M=1 --over recipe=none --recipe mxfp8",
                              "--over M=1 --measured a.fuserun", ""})
    EXPECT_EQ(fuseline(kSweep + options + " " + samplePipeline()).exitCode, 2) << options;
  EXPECT_EQ(fuseline("sweep --device sm_90 --over M=1 " + samplePipeline()).exitCode, 3);
}

}  // namespace
}  // namespace fuseline::testing
