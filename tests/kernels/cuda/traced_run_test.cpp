// A pipeline measured by a trace: the trace's data in the run record.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/document.h"
#include "core/profile/timeline.h"
#include "core/runtime/pipeline_run.h"
#include "tests/support/one_backend.h"
#include "tests/support/simt/simt_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace fuseline::testing {
namespace {

constexpr const char* kPipeline = R"({
  "format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
  "pipeline": {
    "inputs": [{"id": "x", "dtype": "f32", "shape": [8, 16]}],
    "ops": [
      {"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": [16]}},
      {"id": "fc", "op": "Linear", "attributes": {"in_features": 16, "out_features": 8}},
      {"id": "act", "op": "GELU"}],
    "wires": [["x", "norm.x"], ["norm.y", "fc.x"], ["fc.y", "act.x"]],
    "outputs": [{"id": "y", "from": "act.y"}]}})";

Result<RunRecord> measured(StepTiming timing) {
  PipelineRunOptions options{.settings = {.device = "simt", .timing = timing, .warmup = 2, .iterations = 3}};
  Result<std::unique_ptr<PipelineRun>> run =
      PipelineRun::prepare(parseDocument(kPipeline), "small", std::move(options), OneBackend(makeSimtBackend()));
  if (!run) return run.error();
  return (*run)->measure();
}

double sum(const std::vector<ActivityRecord>& activities, std::size_t round) {
  return std::accumulate(activities.begin(), activities.end(), 0.0, [&](double total, const ActivityRecord& activity) {
    return total + activity.samplesNs.at(round);
  });
}

TEST(TracedRun, KeepsTheKernelsOfEveryStep) {
  const Result<RunRecord> record = measured(StepTiming::Cupti);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->settings.timing, StepTiming::Cupti);
  EXPECT_EQ(record->timingNote, "");
  for (const VariantRecord& variant : record->variants) {
    EXPECT_EQ(variant.launching, "captured and replayed");
    EXPECT_TRUE(variant.unattributed.empty());
    EXPECT_EQ(variant.instrumentedNs.size(), 3u);
    for (const StepRecord& step : variant.steps) {
      EXPECT_EQ(step.activities.empty(), step.isView) << step.name;
      for (std::size_t round = 0; round < step.samplesNs.size(); ++round)
        EXPECT_NEAR(step.samplesNs[round], sum(step.activities, round), 1e-3) << step.name;
    }
  }
}

/// Its timeline is one of the rounds, activity by activity.
TEST(TracedRun, KeepsWhenEveryKernelRan) {
  const Result<RunRecord> record = measured(StepTiming::Cupti);
  ASSERT_TRUE(record) << record.error().message;
  for (const VariantRecord& variant : record->variants) {
    std::map<std::pair<int, int>, double> sums;
    for (const TimelineSpan& span : variant.timeline.spans) sums[{span.step, span.activity}] += span.durationNs;
    const auto round = static_cast<std::size_t>(variant.timeline.round);
    for (std::size_t step = 0; step < variant.steps.size(); ++step)
      for (std::size_t activity = 0; activity < variant.steps[step].activities.size(); ++activity)
        EXPECT_NEAR((sums[{static_cast<int>(step), static_cast<int>(activity)}]),
                    variant.steps[step].activities[activity].samplesNs[round], 1e-3);
    EXPECT_EQ(variant.numTraced(), variant.launches) << "the harness sees each launch";
    for (const StepRecord& step : variant.steps)
      EXPECT_EQ(std::ssize(step.activities) == 0, step.launches == 0) << step.name;
    const TimelineLayout layout = layOut(variant);
    EXPECT_EQ(std::ranges::count(layout.boxes, TimelineLevel::Pass, &TimelineBox::level), 2);
    EXPECT_EQ(std::ranges::count(layout.boxes, TimelineLevel::Step, &TimelineBox::level), variant.numSteps());
  }
}

TEST(TracedRun, IsNotTheDefault) {
  const Result<RunRecord> record = measured(StepTiming::Auto);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->settings.timing, StepTiming::Events);
  for (const StepRecord& step : record->variants.front().steps) EXPECT_TRUE(step.activities.empty());
}

}  // namespace
}  // namespace fuseline::testing
