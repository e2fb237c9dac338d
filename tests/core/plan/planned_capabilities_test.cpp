// Planning for a GPU that is not here: fusions of the CUDA backend, and those of TransformerEngine on that hardware.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/analysis.h"

#include "core/edit/apply_edit.h"
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

TEST(DocumentBook, IsAllRulesUnlessTheFileSaysOtherwise) {
  PipelineDocument document;
  EXPECT_EQ(documentBook(document), RuleBook::All);
  ASSERT_TRUE(applyEdit(document, SetFusion{.fusion = {{"rules", "te"}}}));
  EXPECT_EQ(documentBook(document), RuleBook::Te);
  ASSERT_TRUE(applyEdit(document, SetFusion{.fusion = {{"rules", "all"}}}));
  EXPECT_EQ(documentBook(document), RuleBook::All);
}

}  // namespace
}  // namespace fuseline
