// Times of ops in both passes, from the steps of a run.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/by_op/measured_ops.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

StepRecord step(const std::string& name, const std::string& phase, std::vector<std::string> owners, double ns) {
  StepRecord record{.name = name, .phase = phase, .ops = owners, .owners = std::move(owners)};
  record.rule = record.owners.size() > 1 ? "rule" : "";
  record.samplesNs = {ns, ns, ns};
  return record;
}

VariantRecord variant(const std::string& name, std::vector<StepRecord> steps) {
  VariantRecord record{.name = name, .steps = std::move(steps)};
  record.endToEndNs = {1000.0, 1000.0, 1000.0};
  return record;
}

const std::vector<StepRecord> kUnfused = {step("fc", "forward", {"fc"}, 300.0), step("act", "forward", {"act"}, 200.0),
                                          step("act", "backward", {"act"}, 250.0),
                                          step("fc", "backward", {"fc"}, 600.0)};

TEST(MeasuredOps, KeepsThePassesApart) {
  RunRecord record;
  record.variants = {variant("unfused", kUnfused)};
  const MeasuredOps measured = measuredOps(record);
  EXPECT_EQ(measured.ops.at("fc").forward.ns, 300.0);
  EXPECT_EQ(measured.ops.at("fc").backward.ns, 600.0);
  EXPECT_EQ(measured.ops.at("act").backward.ns, 250.0);
  EXPECT_EQ(measured.sumNs, 1350.0);
  EXPECT_EQ(measured.hottestNs, 600.0);
  EXPECT_EQ(measured.farthest, 0.0);  // no peaks of the device
}

TEST(MeasuredOps, EachOpOfAFusedStepHasItsWholeTimeAndTheSumHasItOnce) {
  RunRecord record;
  record.variants = {variant("unfused", kUnfused), variant("fused", {step("fc+act", "forward", {"fc", "act"}, 400.0),
                                                                     step("act", "backward", {"act"}, 250.0),
                                                                     step("fc", "backward", {"fc"}, 600.0)})};
  const MeasuredOps measured = measuredOps(record);
  for (const char* op : {"fc", "act"}) {
    EXPECT_EQ(measured.ops.at(op).forward.ns, 400.0) << op;
    EXPECT_TRUE(measured.ops.at(op).forward.isShared) << op;
    EXPECT_FALSE(measured.ops.at(op).backward.isShared) << op;
  }
  EXPECT_EQ(measured.sumNs, 1250.0);
}

}  // namespace
}  // namespace fuseline::testing
