// fuseline run --ranks: the shipped tensor-parallel example on several ranks, and what cannot be shared.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_file.h"
#include "core/sharding/rank_files.h"
#include "core/tensor/safetensors.h"
#include "tests/app/cli/program.h"
#include "tests/support/run_plan.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

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
  ASSERT_EQ(sum->activities.size(), 1u);  // on the timeline concurrent with the steps
  EXPECT_EQ(sum->activities.front().name, sum->collective);
  const StepRecord* wait = record->variant("unfused")->find("fc1.linear.gather (wait)", "backward");
  ASSERT_NE(wait, nullptr);
  EXPECT_FALSE(wait->exchanges());
  EXPECT_EQ(wait->wireBytes, 0);
  std::set<int> ranks;
  for (const TimelineSpan& span : record->variant("fused")->timeline.rankSpans) ranks.insert(span.rank);
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2}));
  const ProgramResult trace = fuseline("export --to trace " + quoted(folder / "run.fuserun"));
  EXPECT_TRUE(has(trace.out, "\"rank 2\"")) << trace.err;
  EXPECT_TRUE(has(trace.out, "waited for other ranks (ns)"));
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

// 24 x 48 bf16 values, of which each of two ranks sends its half.
TEST(Ranks, ThePlanOfOneOfThemHasItsCommunication) {
  const std::string example = quoted(FUSELINE_SOURCE_DIR "/resources/examples/tensor_parallel_mlp.fuseline") +
                              " --set M=24 --set H=48 --ranks 2";
  const ProgramResult plan = fuseline("fuse --json " + example);
  ASSERT_EQ(plan.exitCode, 0) << plan.err;
  const Json json = Json::parse(plan.out);
  std::vector<std::string> kinds;
  for (const Json& each : json["communication"])
    kinds.push_back(each["phase"].get<std::string>() + " " + each["collective"].get<std::string>());
  const std::vector<std::string> expected = {"forward all-gather",  "forward reduce-scatter",  "backward all-gather",
                                             "backward all-gather", "backward reduce-scatter", "backward all-reduce"};
  EXPECT_TRUE(std::ranges::is_permutation(kinds, expected)) << json["communication"];
  EXPECT_EQ(json["communication"][0]["wireBytes"], 24 * 48 * 2 / 2);
  EXPECT_EQ(json["communication"][0]["op"], "fc1");
  EXPECT_GT(json["communication"][0]["estimate"]["communicationHighNs"], 0.0);

  const ProgramResult tree = fuseline("fuse " + example);
  EXPECT_TRUE(has(tree.out, "Communication of each of 2 ranks")) << tree.out;
  const ProgramResult large = fuseline("suggest --ranks 2 --set M=4096 --set H=8192 " +
                                       quoted(FUSELINE_SOURCE_DIR "/resources/examples/tensor_parallel_mlp.fuseline"));
  EXPECT_TRUE(has(unbroken(large.out), "of which the plan hides")) << large.out;
  EXPECT_TRUE(has(unbroken(large.out), "Userbuffers would hide about")) << large.out;
  const ProgramResult op = fuseline("explain " + example + " fc2");
  EXPECT_TRUE(has(op.out, "reduce-scatter")) << op.out;
  EXPECT_FALSE(has(op.out, "fc1.linear.gather")) << op.out;
  const ProgramResult te = fuseline("fuse --rules te --json " + example);  // its layers communicate inside
  EXPECT_TRUE(Json::parse(te.out)["communication"].empty());
  EXPECT_EQ(fuseline("fuse " + example + " --ranks 5").exitCode, 2);  // twice
}

TEST(Ranks, ThatCannotShareFeaturesAreRefusedByTransformerEngine) {
  const std::string example = quoted(FUSELINE_SOURCE_DIR "/resources/examples/tensor_parallel_mlp.fuseline");
  const ProgramResult result = fuseline("export " + example + " --to te --ranks 3");
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_TRUE(has(unbroken(result.err), "fc1: out_features is 4096, which 3 ranks cannot share equally")) << result.err;
  EXPECT_EQ(fuseline("export " + example + " --to te --ranks 4 --set M=510").exitCode, 0);
}

TEST(Ranks, SequenceParallelismIsSuggestedWithItsGain) {
  const TemporaryFolder folder;
  std::string text = readText(FUSELINE_SOURCE_DIR "/resources/examples/tensor_parallel_mlp.fuseline");
  const std::string on = "\"sequence_parallel\": true";
  for (std::size_t at = text.find(on); at != std::string::npos; at = text.find(on))
    text.replace(at, on.size(), "\"sequence_parallel\": false");
  writeText(folder / "plain.fuseline", text);
  const auto found = [&](const std::string& options) {
    const ProgramResult result = fuseline("suggest --json " + quoted(folder / "plain.fuseline") + options);
    const Json json = result.exitCode == 0 ? Json::parse(result.out) : Json();
    for (const Json& each : json["suggestions"])
      if (each["source"] == "sequence_parallel") return each;
    return Json();
  };
  EXPECT_TRUE(found("").is_null());
  const Json suggestion = found(" --ranks 2");
  ASSERT_TRUE(suggestion.is_object());
  EXPECT_LT(suggestion["after"]["bytesMoved"], suggestion["before"]["bytesMoved"]);
  EXPECT_LT(suggestion["after"]["savedForBackwardBytes"], suggestion["before"]["savedForBackwardBytes"]);
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
  for (const std::string place : {"shards/", "whole.safetensors"}) {
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
  EXPECT_TRUE(has(unbroken(four.err), "belongs to a run of 3 ranks; expected 4.")) << four.err;
  const ProgramResult part =
      fuseline(exampleRun("--quiet --tensors " + quoted(folder / "shards" / "rank-1-of-3.safetensors")));
  EXPECT_EQ(part.exitCode, 1);
  EXPECT_TRUE(has(unbroken(part.err), "Name the folder with the files of all ranks.")) << part.err;
}

// Moments are sums of gradients, whose order differs, and which the norm over all ranks clips; updated shards of three
// ranks are read on two.
TEST(Ranks, UpdateTheirShardsOfParameters) {
  const TemporaryFolder folder;
  std::vector<RunResults> states;
  const std::string training = "--optimizer adamw --optimizer-set max_grad_norm=0.1";
  for (const std::string ranks : {"1", "3"}) {
    const std::string path = quoted(folder / (ranks + ".safetensors"));
    const ProgramResult run = fuseline(exampleRun("--quiet " + training + " --ranks " + ranks + " --save " + path));
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const Result<NamedTensors> saved = readSafetensors(folder / (ranks + ".safetensors"));
    ASSERT_TRUE(saved);
    RunResults& state = states.emplace_back();
    for (const auto& [name, tensor] : *saved) state[name] = tensor.toDoubles();
  }
  EXPECT_EQ(states[0].at("optimizer.step"), std::vector<double>{2.0});
  EXPECT_TRUE(states[0].contains("fc1.weight.exp_avg"));
  EXPECT_EQ(firstDifferenceInNorm(states[1], states[0], 2e-2), "");
  const ProgramResult again =
      fuseline(exampleRun("--quiet --optimizer adamw --ranks 2 --tensors " + quoted(folder / "3.safetensors")));
  EXPECT_EQ(again.exitCode, 0) << again.err;
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

TEST(Ranks, SayWhatIsNotInChunks) {
  const std::string example = quoted(FUSELINE_SOURCE_DIR "/resources/examples/tensor_parallel_mlp.fuseline");
  const ProgramResult plan = fuseline("fuse --ranks 2 --chunks 2 --recipe mxfp8 --stage plan " + example);
  EXPECT_TRUE(has(unbroken(plan.out), "not in chunks: ")) << plan.out;
  const ProgramResult chunks = fuseline("fuse --ranks 2 --chunks 2 --stage plan " + example);
  EXPECT_TRUE(has(chunks.out, "fc1.linear.gather [2/2]")) << chunks.out;
  EXPECT_TRUE(has(unbroken(chunks.out), "Userbuffers fc1_fprop")) << chunks.out;
  const ProgramResult one = fuseline(exampleRun("--quiet --chunks 2"));
  EXPECT_EQ(one.exitCode, 0);
  EXPECT_TRUE(has(one.err, "note: --chunks 2: it has no effect on one rank. Add --ranks N.")) << one.err;
  const ProgramResult planned = fuseline("fuse --chunks 4 --stage plan " + example);
  EXPECT_TRUE(has(planned.err, "note: --chunks 4: it has no effect on one rank. Add --ranks N.")) << planned.err;
  const ProgramResult layers = fuseline("fuse --ranks 2 --chunks 4 --rules te --stage plan " + example);
  EXPECT_TRUE(has(layers.err, "note: --chunks 4: it has no effect with --rules te")) << layers.err;
  const ProgramResult fewer = fuseline("fuse --ranks 2 --chunks 7 --stage plan " + example);
  EXPECT_TRUE(has(fewer.err, "note: --chunks 7: ")) << fewer.err;
  EXPECT_TRUE(has(fewer.err, "chunks instead of 7: the ")) << fewer.err;
}

}  // namespace
}  // namespace fuseline::testing
