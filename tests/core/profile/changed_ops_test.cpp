// How the times of ops changed, where the runs fuse alike and where they do not.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/by_op/changed_ops.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

StepRecord timedStep(const std::string& name, const std::string& phase, std::vector<std::string> owners, double ns) {
  StepRecord record{.name = name, .phase = phase, .owners = std::move(owners)};
  for (int round = -5; round < 5; ++round) record.samplesNs.push_back(ns * (1.0 + round / 1000.0));
  return record;
}

RunRecord timedRun(const char* variant, std::vector<StepRecord> steps) {
  RunRecord record;
  record.variants = {{.name = variant, .steps = std::move(steps)}};
  return record;
}

TEST(ChangedOps, KeepsThePassesApartAndTellsNoise) {
  const RunRecord base =
      timedRun("fused", {timedStep("fc", "forward", {"fc"}, 200.0), timedStep("fc", "backward", {"fc"}, 400.0)});
  const RunRecord next =
      timedRun("fused", {timedStep("fc", "forward", {"fc"}, 300.0), timedStep("fc", "backward", {"fc"}, 400.0)});
  const OpChange change = changedOps(base, next).at("fc");
  EXPECT_NEAR(change.forward->change.median, 1.5, 1e-9);
  EXPECT_TRUE(change.forward->change.isSignificant());
  EXPECT_NEAR(change.forward->base.median, 200.0, 1.0);
  EXPECT_FALSE(change.backward->change.isSignificant());
}

/// fc + act took 300 and 500 ns apart, and take 400 ns in one step: neither of them has a time of its own to compare.
TEST(ChangedOps, ComparesWhatOneRunFusesAsAWhole) {
  const RunRecord apart =
      timedRun("unfused", {timedStep("fc", "forward", {"fc"}, 300.0), timedStep("act", "forward", {"act"}, 500.0),
                           timedStep("norm", "forward", {"norm"}, 100.0)});
  RunRecord together = timedRun(
      "unfused", {timedStep("norm", "forward", {"norm"}, 100.0), timedStep("fc+act", "forward", {"fc", "act"}, 400.0)});
  for (const auto& [base, next, ratio] : {std::tuple(apart, together, 0.5), {together, apart, 2.0}}) {
    const std::map<std::string, OpChange> changes = changedOps(base, next);
    for (const char* op : {"fc", "act"}) EXPECT_NEAR(changes.at(op).forward->change.median, ratio, 1e-9) << op;
    EXPECT_NEAR(changes.at("norm").forward->change.median, 1.0, 1e-9);
    EXPECT_FALSE(changes.at("fc").backward);
  }
}

TEST(ChangedOps, LeavesOutWhatOneRunHasNot) {
  const RunRecord base =
      timedRun("fused", {timedStep("fc", "forward", {"fc"}, 300.0), timedStep("old", "forward", {"old"}, 10.0)});
  const RunRecord next =
      timedRun("fused", {timedStep("fc", "forward", {"fc"}, 300.0), timedStep("new", "forward", {"new"}, 10.0)});
  EXPECT_EQ(changedOps(base, next).size(), 1u);
  EXPECT_TRUE(changedOps(base, timedRun("unfused", {timedStep("fc", "forward", {"fc"}, 300.0)})).empty());
}

}  // namespace
}  // namespace fuseline::testing
