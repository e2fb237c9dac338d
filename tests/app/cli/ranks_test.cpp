// fuseline run --ranks: the shipped tensor-parallel example on several ranks, and what cannot be shared.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_file.h"
#include "core/sharding/rank_files.h"
#include "core/tensor/safetensors.h"
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

/// A sentence may be broken anywhere.
std::string unbroken(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::string exampleRun(const std::string& options) {
  return "run " + quoted(FUSELINE_SOURCE_DIR "/resources/examples/tensor_parallel_mlp.fuseline") +
         " --set M=24 --set H=48 --iterations 2 --warmup 1 " + options;
}

TEST(Ranks, TheExampleRunsOnSeveralRanksAndSaysWhatTheyExchange) {
  const TemporaryFolder folder;
  const ProgramResult run = fuseline(exampleRun("--ranks 3 -o " + quoted(folder / "run.fuserun")));
  ASSERT_EQ(run.exitCode, 0) << run.err;
  EXPECT_TRUE(has(run.out, "Ranks: 3, as threads of this process; communicator: in process")) << run.out;
  EXPECT_TRUE(has(run.out, "fc1.linear.gather (forward)")) << run.out;
  EXPECT_TRUE(has(run.out, "slowest rank")) << run.out;
  const Result<RunRecord> record = loadRunRecord(folder / "run.fuserun");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->settings.ranks, 3);
  const StepRecord* gather = record->variant("unfused")->find("fc1.linear.gather", "forward");
  ASSERT_NE(gather, nullptr);
  EXPECT_EQ(gather->collective, "all-gather");
  EXPECT_EQ(gather->wireBytes, 24 * 48 * 2 / 3 * 2);  // bf16, two of three shards
  EXPECT_EQ(gather->rankNs.size(), 3u);
  EXPECT_GT(gather->transferNs, 0.0);
  EXPECT_GT(gather->exposedNs, 0.0);
  EXPECT_EQ(gather->hiddenNs, 0.0);  // the layer waits for its input
  const StepRecord* sum = record->variant("unfused")->find("fc1.linear.gather", "backward");
  ASSERT_NE(sum, nullptr);
  ASSERT_EQ(sum->activities.size(), 1u);  // on the timeline beside the steps
  EXPECT_EQ(sum->activities.front().name, sum->collective);
  const StepRecord* wait = record->variant("unfused")->find("fc1.linear.gather (wait)", "backward");
  ASSERT_NE(wait, nullptr);
  EXPECT_FALSE(wait->exchanges());
  EXPECT_EQ(wait->wireBytes, 0);
}

TEST(Ranks, CommunicateByThemselvesWhereAskedTo) {
  const TemporaryFolder folder;
  const ProgramResult run = fuseline(exampleRun("--ranks 2 --no-overlap -o " + quoted(folder / "run.fuserun")));
  ASSERT_EQ(run.exitCode, 0) << run.err;
  const Result<RunRecord> record = loadRunRecord(folder / "run.fuserun");
  ASSERT_TRUE(record) << record.error().message;
  for (const VariantRecord& variant : record->variants)
    for (const StepRecord& step : variant.steps) EXPECT_EQ(step.hiddenNs, 0.0) << step.name;
  EXPECT_EQ(record->variant("unfused")->find("fc1.linear.gather (wait)", "backward"), nullptr);
}

// The parameters that a run of three ranks saves are those that one rank drew.
TEST(Ranks, SaveWholeTensors) {
  const TemporaryFolder folder;
  for (const std::string ranks : {"1", "3"}) {
    const ProgramResult run =
        fuseline(exampleRun("--quiet --ranks " + ranks + " --save " + quoted(folder / (ranks + ".safetensors"))));
    ASSERT_EQ(run.exitCode, 0) << run.err;
  }
  const Result<NamedTensors> one = readSafetensors(folder / "1.safetensors");
  const Result<NamedTensors> three = readSafetensors(folder / "3.safetensors");
  ASSERT_TRUE(one && three);
  ASSERT_EQ(one->size(), three->size());
  for (std::size_t i = 0; i < one->size(); ++i) {
    EXPECT_EQ((*one)[i].first, (*three)[i].first);
    EXPECT_EQ((*one)[i].second.data, (*three)[i].second.data) << (*one)[i].first;
  }
  const ProgramResult again = fuseline(exampleRun("--quiet --ranks 2 --tensors " + quoted(folder / "3.safetensors")));
  EXPECT_EQ(again.exitCode, 0) << again.err;
}

// Shards of three ranks, joined, are the whole tensors, and are read on any number of ranks.
TEST(Ranks, SaveTheirShardsInAFolder) {
  const TemporaryFolder folder;
  for (const std::string place : {"shards", "whole.safetensors"}) {
    const ProgramResult run = fuseline(exampleRun("--quiet --ranks 3 --save " + quoted(folder / place)));
    ASSERT_EQ(run.exitCode, 0) << run.err;
  }
  const Result<NamedTensors> joined = readRankFiles(folder / "shards");
  const Result<NamedTensors> whole = readSafetensors(folder / "whole.safetensors");
  ASSERT_TRUE(joined && whole);
  ASSERT_EQ(joined->size(), whole->size());
  for (std::size_t i = 0; i < whole->size(); ++i) {
    EXPECT_EQ((*joined)[i].first, (*whole)[i].first);
    EXPECT_EQ((*joined)[i].second.data, (*whole)[i].second.data) << (*whole)[i].first;
  }
  const ProgramResult two = fuseline(exampleRun("--quiet --ranks 2 --tensors " + quoted(folder / "shards") +
                                                " --save " + quoted(folder / "one.safetensors")));
  EXPECT_EQ(two.exitCode, 0) << two.err;
  EXPECT_EQ(readSafetensors(folder / "one.safetensors")->front().second.data, whole->front().second.data);
  const ProgramResult four = fuseline(exampleRun("--quiet --ranks 4 --save " + quoted(folder / "shards")));
  EXPECT_EQ(four.exitCode, 1);
  EXPECT_TRUE(has(unbroken(four.err), "is of 3 ranks, expected 4.")) << four.err;
  const ProgramResult part =
      fuseline(exampleRun("--quiet --tensors " + quoted(folder / "shards" / "rank-1-of-3.safetensors")));
  EXPECT_EQ(part.exitCode, 1);
  EXPECT_TRUE(has(unbroken(part.err), "Name the folder with the files of all ranks.")) << part.err;
}

TEST(Ranks, RefuseSizesThatTheyCannotShare) {
  const ProgramResult run = fuseline(exampleRun("--ranks 5"));
  EXPECT_EQ(run.exitCode, 1);
  EXPECT_TRUE(has(unbroken(run.err), "which 5 ranks cannot share equally; it must be a multiple of 5.")) << run.err;
}

TEST(Ranks, RefuseWhatNeedsOneRank) {
  const ProgramResult run = fuseline(exampleRun("--ranks 2 --numerics"));
  EXPECT_EQ(run.exitCode, 2);
  EXPECT_TRUE(has(unbroken(run.err), "--numerics: expected one rank, found --ranks 2.")) << run.err;
}

}  // namespace
}  // namespace fuseline::testing
