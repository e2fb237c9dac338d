// The graph in reports: when there is one, and the times that determine its shades.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/export/drawing/palette.h"
#include "core/export/html_report.h"
#include "tests/core/export/sample_layout.h"
#include "tests/core/export/sample_runs.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// A run of a template by its own plans, each step as long as its place in the list says.
RunRecord plannedRun(const std::string& name) {
  RunRecord record = comparedRun();
  record.settings.symbols.clear();
  for (const DocumentTemplate& entry : documentTemplates())
    if (entry.name == name) record.pipeline = Json::parse(entry.text);
  const Analysis analysis = analysisOf(name);
  for (VariantRecord& variant : record.variants) {
    variant.steps.clear();
    for (const Step& step : (variant.name == "fused" ? *analysis.fusedPlan : analysis.unfusedPlan()).steps) {
      StepRecord each = sampleStep(step.name, std::string(phaseName(step.phase)), {});
      each.rule = step.rule;
      for (const NodeId node : step.nodes) each.ops.push_back(analysis.graph().node(node).id);
      each.samplesNs.assign(3, 1000.0 * static_cast<double>(variant.steps.size() + 1));
      variant.steps.push_back(std::move(each));
    }
  }
  return record;
}

TEST(ReportGraph, NeedsSomebodyWhoLaysItOut) {
  const RunRecord record = plannedRun("llama-mlp");
  EXPECT_EQ(htmlReportBeside(record, {}).find("<svg"), std::string::npos);
  EXPECT_EQ(htmlReportBeside(record, {}), *htmlReport(record));
  const std::string page = htmlReportBeside(record, {}, inAColumn);
  EXPECT_NE(page.find("<h2>Graph</h2>"), std::string::npos);
  EXPECT_EQ(page.find("xmlns"), std::string::npos);
  const LayOutGraph fails = [](const LayoutProblem&) { return Error{"it is tired"}; };
  EXPECT_EQ(htmlReportBeside(record, {}, fails), *htmlReport(record));
}

TEST(ReportGraph, IsShadedByTheStepsOfTheRun) {
  const RunRecord record = plannedRun("llama-mlp");
  const std::string page = htmlReportBeside(record, {}, inAColumn);
  const VariantRecord& fused = *record.variant("fused");
  ASSERT_EQ(fused.steps.size(), 9u);
  EXPECT_NE(page.find("Shares are of the sum of all step medians, 45.0 us"), std::string::npos)
      << page.substr(page.find("Shares are"), 80);
  EXPECT_NE(page.find("<span>9.00 us (20 %)</span></p>"), std::string::npos);
  for (const StepRecord& step : fused.steps)
    EXPECT_NE(page.find(hexOf(heatColor(step.samplesNs.front() / 9000.0))), std::string::npos) << step.name;
}

TEST(ReportGraph, OpsOfSeveralStepsHaveTheirSum) {
  RunRecord record = plannedRun("llama-mlp");
  std::vector<StepRecord>& steps = record.variants[1].steps;
  ASSERT_EQ(steps[1].ops, std::vector<std::string>{"norm"});
  StepRecord again = steps[1];
  again.name = "norm.again";
  again.samplesNs = {3000.0};
  steps.push_back(again);
  const std::string page = htmlReportBeside(record, {}, inAColumn);
  EXPECT_NE(page.find(">5.00 us · 10 %</text>"), std::string::npos) << "2 us and 3 us, of 48 us";
}

TEST(ReportGraph, FramesOfOneOpAreOne) {
  RunRecord record = plannedRun("llama-mlp");
  std::vector<StepRecord>& steps = record.variants[1].steps;
  const auto fused = std::ranges::find_if(steps, [](const StepRecord& step) { return !step.rule.empty(); });
  StepRecord again = *fused;
  again.rule = "AgainAndAgain";
  steps.push_back(again);
  const std::string page = htmlReportBeside(record, {}, inAColumn);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_EQ(page.find("<title>AgainAndAgain</title>"), std::string::npos);
}

TEST(ReportGraph, HasNoShadesWithoutTimes) {
  RunRecord record = plannedRun("llama-mlp");
  for (VariantRecord& variant : record.variants)
    for (StepRecord& step : variant.steps) step.samplesNs.clear();
  const std::string page = htmlReportBeside(record, {}, inAColumn);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_EQ(page.find("box heat"), std::string::npos);
  EXPECT_EQ(page.find("class=\"legend\""), std::string::npos);
}

}  // namespace
}  // namespace fuseline
