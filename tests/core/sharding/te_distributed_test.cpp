// The cases of TransformerEngine's distributed tests of te.ops, with 32 rows and 32 x 32 weights on each rank.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/ranked_layers.h"
#include "tests/support/recipes.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr std::int64_t kLocal = 32;
constexpr int kRanks = 2;

const std::shared_ptr<Backend>& cpuBackend() {
  static const std::shared_ptr<Backend> backend = cpu::makeCpuBackend();
  return backend;
}

const std::vector<std::shared_ptr<Backend>>& cpuRanks(int ranks) {
  static std::map<int, std::vector<std::shared_ptr<Backend>>> known;
  std::vector<std::shared_ptr<Backend>>& shares = known[ranks];
  while (std::ssize(shares) < ranks) shares.push_back(cpuBackend()->shareOf(ranks));
  return shares;
}

/// Results of two ranks against those of one; empty: they agree. recipeName: empty for none.
std::string difference(const Graph& whole, const std::string& recipeName, double tolerance, bool isFused, int runs = 1,
                       const Attributes& fields = {}) {
  RankedRunOptions options{.isFused = isFused, .numRuns = runs};
  if (!recipeName.empty()) options.recipe = recipe(recipeName, fields);
  const RankedRun one = runOnOneRank(whole, cpuBackend(), options);
  const RankedRun several = runOnRanks(whole, cpuRanks(kRanks), options);
  return one.problem + several.problem + firstDifferenceInNorm(several.results, one.results, tolerance);
}

struct Case {
  const char* mode;
  bool isSequenceParallel;
  std::string recipe;
  DType dtype = DType::F32;
  bool isFused = false;

  double tolerance() const {
    if (recipe.empty()) return dtype == DType::F32 ? 1e-5 : 1.6e-2;
    return recipe == "NVFP4BlockScaling" ? 0.4 : 0.12;
  }
  std::string text() const {
    return fmt::format("{}, sequence_parallel {}, {}", mode, isSequenceParallel, recipe.empty() ? "None" : recipe);
  }
};

std::vector<Case> cases(DType dtype) {
  std::vector<Case> all;
  for (const char* const mode : {"column", "row"})
    for (const bool isSequenceParallel : {false, true})
      for (const char* const name : {"", "DelayedScaling", "Float8CurrentScaling", "MXFP8BlockScaling"})
        all.push_back({mode, isSequenceParallel, name, dtype});
  if (dtype == DType::BF16)
    for (const bool isSequenceParallel : {false, true})
      for (const char* const mode : {"column", "row"})
        all.push_back({mode, isSequenceParallel, "NVFP4BlockScaling", dtype});
  for (std::size_t i = 0; i < all.size(); ++i) all[i].isFused = (i + i / 4) % 2 == 0;
  return all;
}

/// The ops of a Linear with a bias.
std::vector<Link> composite(const std::string& id, const Case& given, std::int64_t width) {
  const bool isColumn = std::string(given.mode) == "column";
  std::vector<Link> links = {parallel(linear(width, id), isColumn ? "column" : "none", given.isSequenceParallel),
                             link("Bias", id + "bias")};
  if (!isColumn) links.push_back(link(given.isSequenceParallel ? "ReduceScatter" : "AllReduce", id + "sum"));
  return links;
}

std::int64_t rowsOf(const Case& given) { return given.isSequenceParallel ? kLocal * kRanks : kLocal; }

// All-reduce: the gradient is handed on. All-gather: gradients are added, which are the same on all ranks here.
TEST(TeDistributed, CollectivesAreExact) {
  for (const int ranks : {1, 2, 4})
    for (const std::string name : {"AllReduce", "AllGather", "ReduceScatter"}) {
      const Graph whole = chain(DType::F32, {kLocal, kLocal}, {link(name, "op")});
      const RankedRun run = runOnRanks(whole, cpuRanks(ranks));
      RunResults expected = runOnOneRank(whole, cpuBackend(), {}).results;
      ASSERT_EQ(run.problem, "") << name;
      if (name == "AllGather")
        for (double& value : expected.at("grad.x")) value *= ranks;
      EXPECT_EQ(run.results, expected) << name << " on " << ranks;
    }
}

TEST(TeDistributed, BasicLinear) {
  for (const Case& given : cases(DType::F32)) {
    const bool isColumn = std::string(given.mode) == "column";
    const Graph whole =
        chain(given.dtype, {rowsOf(given), isColumn ? kLocal : kLocal * kRanks},
              {parallel(linear(isColumn ? kLocal * kRanks : kLocal, "fc"), given.mode, given.isSequenceParallel)});
    EXPECT_EQ(difference(whole, given.recipe, given.tolerance(), given.isFused), "") << given.text();
  }
}

// The bias of a row-parallel layer is added on every rank: the whole one is the sum.
TEST(TeDistributed, LinearWithBias) {
  for (const Case& given : cases(DType::BF16)) {
    const bool isColumn = std::string(given.mode) == "column";
    const Graph whole = chain(given.dtype, {rowsOf(given), isColumn ? kLocal : kLocal * kRanks},
                              composite("fc", given, isColumn ? kLocal * kRanks : kLocal));
    EXPECT_EQ(difference(whole, given.recipe, given.tolerance(), given.isFused), "") << given.text();
  }
}

// With three warm-up steps.
TEST(TeDistributed, Mlp) {
  for (const Case& given : cases(DType::BF16)) {
    if (std::string(given.mode) == "row") continue;  // it has one layer of each mode
    std::vector<Link> links = {link("GELU", "first")};
    Case row = given;
    row.mode = "row";
    for (Link& each : composite("up", given, kLocal * kRanks)) links.push_back(std::move(each));
    links.push_back(link("GELU", "mid"));
    for (Link& each : composite("down", row, kLocal)) links.push_back(std::move(each));
    links.push_back(link("GELU", "last"));
    const Graph whole = chain(given.dtype, {rowsOf(given), kLocal}, links);
    EXPECT_EQ(difference(whole, given.recipe, given.tolerance(), given.isFused, 4), "") << given.text();
  }
}

/// The scales of quantizers after some runs.
RunResults scalesOf(const RankedRun& run) {
  RunResults scales;
  for (const auto& [name, values] : run.results)
    if (name.ends_with(".scale")) scales[name] = values;
  return scales;
}

// Each rank has the scales of the whole tensors, bit by bit.
TEST(TeDistributed, ScalesAreThoseOfWholeTensors) {
  Attributes fields;
  fields.set("margin", std::int64_t{2});
  fields.set("amax_history_len", std::int64_t{31});
  const RankedRunOptions options{.recipe = recipe("DelayedScaling", fields), .numRuns = 3};
  const Graph whole =
      chain(DType::F32, {kLocal * kRanks, kLocal}, {parallel(linear(kLocal * kRanks, "fc"), "column", true)});
  const RankedRun one = runOnOneRank(whole, cpuBackend(), options);
  const RankedRun several = runOnRanks(whole, cpuRanks(kRanks), options);
  ASSERT_EQ(one.problem + several.problem, "");
  EXPECT_EQ(scalesOf(one).size(), 3u);
  EXPECT_EQ(scalesOf(several), scalesOf(one));
}

TEST(TeDistributed, BackwardOverride) {
  for (const std::string value : {"high_precision", "dequantized"})
    for (const char* const name : {"Float8CurrentScaling", "MXFP8BlockScaling"}) {
      Attributes fields;
      fields.set("backward_override", value);
      const Graph whole = chain(DType::BF16, {kLocal * kRanks, kLocal},
                                {parallel(linear(kLocal * kRanks, "up"), "column", true), link("GELU", "act"),
                                 parallel(linear(kLocal, "down"), "row", true)});
      EXPECT_EQ(difference(whole, name, 0.12, value == "dequantized", 1, fields), "") << name << ", " << value;
    }
}

}  // namespace
}  // namespace fuseline::testing
