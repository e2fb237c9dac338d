// `fuseline run --capture`: its output, its files and its refusals.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/safetensors.h"
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

const std::string kRun = "run --device reference --iterations 1 --warmup 0 ";

/// c.safetensors against d.safetensors.
void expectWhatADumpHolds(const TemporaryFolder& folder, std::size_t numTensors) {
  const Result<NamedTensors> captured = readSafetensors(folder / "c.safetensors");
  const Result<NamedTensors> dump = readSafetensors(folder / "d.safetensors");
  ASSERT_TRUE(captured) << captured.error().message;
  ASSERT_EQ(captured->size(), numTensors);
  for (const auto& [name, tensor] : *captured) {
    const Tensor* dumped = findTensor(*dump, "fused/" + name);
    ASSERT_NE(dumped, nullptr) << name;
    EXPECT_EQ(tensor.data, dumped->data) << name;
  }
}

TEST(Capture, WritesWhatTheFusedPlanOfADumpHolds) {
  const TemporaryFolder folder;
  const ProgramResult result = fuseline(kRun + "--quiet --capture norm:y,grad.x --capture fc1.weight --captured " +
                                        quoted(folder / "c.safetensors") + " --dump " +
                                        quoted(folder / "d.safetensors") + " " + samplePipeline());
  ASSERT_EQ(result.exitCode, 0) << result.err;
  expectWhatADumpHolds(folder, 3);
}

/// A run rotates the part in the memory of fc's result, and takes it for what is joined.
TEST(Capture, OfColumnsThatAreJoinedInPlaceHasTheNumbersOfADump) {
  const TemporaryFolder folder;
  writeText(folder / "join.fuseline", R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
    "pipeline": {"inputs": [{"id": "x", "dtype": "f32", "shape": [5, 2, 16]}],
      "ops": [{"id": "fc", "op": "Linear", "attributes": {"in_features": 16, "out_features": 32, "bias": false}},
              {"id": "heads", "op": "Reshape", "attributes": {"shape": [-1, 2, 4, 8]}},
              {"id": "split", "op": "Split", "attributes": {"sizes": [4, 4]}},
              {"id": "rope", "op": "RotaryPositionEmbedding", "attributes": {"dim": 4}},
              {"id": "join", "op": "Concat", "attributes": {"num_inputs": 2}},
              {"id": "act", "op": "GELU"}],
      "wires": [["x", "fc.x"], ["fc.y", "heads.x"], ["heads.y", "split.x"], ["split.y1", "rope.x"],
                ["split.y", "join.x"], ["rope.y", "join.x1"], ["join.y", "act.x"]],
      "outputs": [{"id": "y", "from": "act.y"}]}})");
  const ProgramResult result =
      fuseline(kRun + "--quiet --capture split:y1,rope:y,join:y,fc:y,grad.rope:y,grad.fc:y --captured " +
               quoted(folder / "c.safetensors") + " --dump " + quoted(folder / "d.safetensors") + " " +
               quoted(folder / "join.fuseline"));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  expectWhatADumpHolds(folder, 6);
}

/// The mean of the squares of a normalized row is 1, so that L2 is the root of the number of elements.
TEST(Capture, PrintsStatisticsAndSaysTheSizeFirst) {
  const ProgramResult result = fuseline(kRun + "--capture norm:y " + samplePipeline());
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.err, "Captures 1 tensor, ")) << result.err;
  EXPECT_TRUE(has(result.out, "norm:y")) << result.out;
  const Json captured = fuseline(kRun + "--json --capture norm:y " + samplePipeline()).json()["captured"];
  ASSERT_EQ(captured.size(), 1U);
  const Json& statistics = captured[0]["statistics"];
  const auto elements = statistics["elements"].get<double>();
  EXPECT_NEAR(statistics["l2"].get<double>(), std::sqrt(elements), 0.01 * std::sqrt(elements));
  EXPECT_EQ(statistics["nans"], 0);
}

TEST(Capture, NamesMayHoldCommas) {
  const TemporaryFolder folder;
  const std::string file = quoted(folder / "comma.fuseline");
  ASSERT_EQ(fuseline("edit --rename norm=n,m " + samplePipeline() + " -o " + file).exitCode, 0);
  const Json captured = fuseline(kRun + "--json --capture grad.x,n,m:y,x " + file).json()["captured"];
  ASSERT_EQ(captured.size(), 3U);
  EXPECT_EQ(captured[1]["name"], "n,m:y");
  EXPECT_TRUE(has(fuseline(kRun + "--capture grad.x,m:y " + file).err, "m:y"));
}

TEST(Capture, AFolderTakesAFileOfEachTensor) {
  const TemporaryFolder folder;
  ASSERT_EQ(fuseline(kRun + "--quiet --capture norm:y,grad.x --captured " + quoted(folder / "new/tensors") + " " +
                     samplePipeline())
                .exitCode,
            0);
  EXPECT_EQ(readText(folder / "new/tensors/norm_y.npy").substr(1, 5), "NUMPY");
  EXPECT_EQ(readText(folder / "new/tensors/grad.x.npy").substr(1, 5), "NUMPY");
}

TEST(Capture, AnNpyFileTakesOneTensor) {
  const TemporaryFolder folder;
  const std::string file = " --captured " + quoted(folder / "t.npy") + " " + samplePipeline();
  EXPECT_EQ(fuseline(kRun + "--quiet --capture norm:y" + file).exitCode, 0);
  EXPECT_EQ(readText(folder / "t.npy").substr(1, 5), "NUMPY");
  const ProgramResult two = fuseline(kRun + "--capture norm:y,grad.x" + file);
  EXPECT_EQ(two.exitCode, 2);
  EXPECT_TRUE(has(two.err, "expected one tensor for a .npy file, found 2")) << two.err;
}

TEST(Capture, ListsWhatThereIsWithoutARun) {
  const ProgramResult result = fuseline("run --device reference --capture-list " + samplePipeline());
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "grad.fc1.weight")) << result.out;
  EXPECT_FALSE(has(result.out, "end to end")) << "nothing was measured";
  const Json list = fuseline("run --device reference --json --capture-list " + samplePipeline()).json()["capturable"];
  const auto isMissing = [](const Json& tensor) { return !tensor["fusedAwayBy"].is_null(); };
  EXPECT_TRUE(std::any_of(list.begin(), list.end(), isMissing));
  const Json plain =
      fuseline("run --device reference --variants unfused --json --capture-list " + samplePipeline()).json();
  EXPECT_TRUE(std::none_of(plain["capturable"].begin(), plain["capturable"].end(), isMissing));
}

/// Both ways that the message names lead to the tensor.
TEST(Capture, SaysWhichFusionNeverStoresATensorAndHowToSeeIt) {
  const Json list = fuseline("run --device reference --json --capture-list " + samplePipeline()).json()["capturable"];
  const auto missing =
      std::find_if(list.begin(), list.end(), [](const Json& tensor) { return !tensor["fusedAwayBy"].is_null(); });
  ASSERT_NE(missing, list.end());
  const std::string name = (*missing)["name"];
  const ProgramResult refused = fuseline(kRun + "--capture " + name + " " + samplePipeline());
  EXPECT_EQ(refused.exitCode, 2);
  EXPECT_TRUE(has(refused.err, name + " is never stored: " + (*missing)["fusedAwayBy"].get<std::string>()))
      << refused.err;
  EXPECT_TRUE(has(refused.err, "--without ")) << refused.err;
  EXPECT_EQ(fuseline(kRun + "--quiet --variants unfused --capture " + name + " " + samplePipeline()).exitCode, 0);
}

TEST(Capture, RefusesMoreThanItsLimitWithBothSizes) {
  const std::string large = kRun + "--set M=4096 --set H=256 --capture x --capture-limit 1 " + samplePipeline();
  const ProgramResult result = fuseline(large);
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "but a capture may take 1 MiB")) << result.err;
  EXPECT_TRUE(has(result.err, "--capture-limit")) << result.err;
  EXPECT_EQ(result.out, "") << "nothing was measured first";
}

TEST(Capture, IsRefusedWhereItMeansNothing) {
  const TemporaryFolder folder;
  for (const std::string& arguments :
       {std::string("--capture nothing.here "), std::string("--captured c.safetensors "),
        std::string("--recipe none,mxfp8 --capture norm:y "), std::string("--capture norm:y --capture-limit 0 ")})
    EXPECT_EQ(fuseline(kRun + arguments + samplePipeline(), {}, folder.path()).exitCode, 2) << arguments;
  EXPECT_TRUE(has(fuseline(kRun + "--capture nrom:y " + samplePipeline()).err, "did you mean norm:y?"));
}

}  // namespace
}  // namespace fuseline::testing
