// Planning for a GPU that is not here: fusions of the CUDA backend, and those of TransformerEngine on that hardware.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/analysis.h"

#include "tests/support/pipelines.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Verdict planned(const char* kernel) {
  const Graph graph = chain(DType::BF16, {4, 8}, {link("GELU", "act")});
  const Capabilities capabilities = plannedCapabilities(
      [](const KernelQuery& query) { return query.kernel == "Here" ? Verdict::yes() : Verdict::no("None here."); });
  const NodeId members[] = {0};
  return capabilities({.graph = graph, .kernel = kernel, .phase = Phase::Forward, .members = members});
}

TEST(PlannedCapabilities, AreThoseOfTheBackend) {
  EXPECT_TRUE(planned("Here"));
  EXPECT_EQ(planned("LinearEpilogue").reason(), "None here.");
}

TEST(PlannedCapabilities, AssumeTheKernelsOfFusionsThatNeedCertainHardware) {
  int numAssumed = 0;
  for (const FusionRule* rule : builtinRules().all()) {
    EXPECT_EQ(bool(planned(rule->becomes.c_str())), rule->hardware.has_value()) << rule->name;
    numAssumed += rule->hardware.has_value();
  }
  EXPECT_GT(numAssumed, 0);
}

TEST(PlannedCapabilities, AreUnknownWithoutABackend) { EXPECT_FALSE(plannedCapabilities({})); }

}  // namespace
}  // namespace fuseline
