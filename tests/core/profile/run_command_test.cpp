// Command lines, as a shell would take them apart.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_command.h"

#include <array>
#include <cstdio>
#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

TEST(RunCommand, NamesWhatIsNotTheDefault) {
  EXPECT_EQ(runCommand({}, "mlp.fuseline"), "fuseline run mlp.fuseline");
  const RunSpec settings{.device = "cuda:0",
                         .pass = ExecutionMode::Inference,
                         .rules = RuleBook::Te,
                         .recipe = "MXFP8BlockScaling",
                         .recipeFields = {{"fp8_format", "E4M3"}},
                         .timing = StepTiming::Cupti,
                         .emulates = true,
                         .startsCold = true,
                         .seed = 7,
                         .symbols = {{"M", 512}}};
  EXPECT_EQ(
      runCommand(settings, "my mlp.fuseline", "in.safetensors"),
      "fuseline run 'my mlp.fuseline' --pass forward --set M=512 --device cuda:0 --rules te --recipe MXFP8BlockScaling "
      "--emulate --recipe-set fp8_format=E4M3 --timing cupti --cold --seed 7 --tensors in.safetensors");
}

TEST(RunCommand, NamesTheFusionsThatWereSwitched) {
  EXPECT_EQ(repeatCommand({.seed = 7}, {.without = {"Rule@fc1", "Other"}, .with = {"Third@it's"}}, "mlp.fuseline"),
            "fuseline run mlp.fuseline --seed 7 --without Rule@fc1 --without Other --with 'Third@it'\\''s'");
}

TEST(RunCommand, NamesTheAxesOfASweep) {
  const ShapeSweep sweep{.axes = {{"M", {128, 256, 512}}, {"H", {64, 100}}}, .recipes = {"None", "MXFP8BlockScaling"}};
  const RunSpec settings{.device = "cuda:0", .recipe = "DelayedScaling", .symbols = {{"H", 32}, {"K", 8}}};
  EXPECT_EQ(sweepCommand(sweep, settings, "my mlp.fuseline"),
            "fuseline sweep 'my mlp.fuseline' --over M=128:512:x2 --over H=64,100 --over recipe=None,MXFP8BlockScaling "
            "--set K=8 --device cuda:0")
      << "what an axis sets is not set besides";
  EXPECT_EQ(sweepCommand({.axes = {{"M", {1, 2, 3}}}}, {.recipe = "None"}, "a.fuseline"),
            "fuseline sweep a.fuseline --over M=1:3:+1 --recipe None");
}

TEST(RunCommand, LeavesTheTimingOfStepsToNsightSystems) {
  EXPECT_EQ(nsysCommand({.device = "cuda:0", .timing = StepTiming::Cupti}, "/a b/mlp.fuseline"),
            "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --output=mlp fuseline run '/a b/mlp.fuseline' "
            "--device cuda:0 --timing none");
}

std::string asTheShellReadsIt(const std::string& word) {
  const std::unique_ptr<FILE, int (*)(FILE*)> shell(popen(("printf %s " + word).c_str(), "r"), pclose);
  std::array<char, 256> buffer{};
  const std::size_t size = fread(buffer.data(), 1, buffer.size(), shell.get());
  return {buffer.data(), size};
}

TEST(RunCommand, QuotesAnythingForTheShell) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab '\"\\$`*;&|<>(){}~#!\n=/")));
    RC_PRE(text.size() < 200);
    RC_ASSERT(asTheShellReadsIt(shellWord(text)) == text);
  }));
}

}  // namespace
}  // namespace fuseline
