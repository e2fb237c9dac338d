// Lines below the figures in the table of a run.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/run_table.h"

#include <gtest/gtest.h>

namespace fuseline::cli {
namespace {

std::string tableOf(StepTiming timing, const std::string& timingNote = "") {
  RunRecord record;
  record.settings.timing = timing;
  record.timingNote = timingNote;
  return runTable(record, false);
}

TEST(RunTable, SaysHowStepsWereTimed) {
  struct Case {
    StepTiming timing;
    const char* words;
  };
  for (const Case& each : {Case{StepTiming::Cupti, "timed by CUPTI, kernel by kernel"},
                           {StepTiming::Events, "timed by device events"},
                           {StepTiming::Host, "timed by the host clock, with a device synchronization"},
                           {StepTiming::None, "Steps were not timed."}})
    EXPECT_NE(tableOf(each.timing).find(each.words), std::string::npos) << nameOf(each.timing) << ":\n"
                                                                        << tableOf(each.timing);
}

TEST(RunTable, SaysWhyStepsWereNotTraced) {
  const std::string text = tableOf(StepTiming::Events, "CUPTI is in use by another tool.");
  EXPECT_NE(text.find("They were not traced: CUPTI is in use by another tool."), std::string::npos) << text;
  EXPECT_EQ(tableOf(StepTiming::Events).find("They were not traced"), std::string::npos);
}

TEST(RunTable, CountsStepsThatWaitedForTheHost) {
  RunRecord record;
  record.settings.timing = StepTiming::Events;
  VariantRecord fused{.name = "fused", .steps = {{.name = "a", .phase = "forward"}, {.name = "b", .phase = "forward"}}};
  fused.timeline = {
      .spans = {{.step = 0, .startNs = 0, .durationNs = 2000}, {.step = 1, .startNs = 2000, .durationNs = 9000}},
      .launches = {{.step = 0, .startNs = 0, .durationNs = 1500}, {.step = 1, .startNs = 1500, .durationNs = 1000}}};
  record.variants = {fused};
  const std::string text = runTable(record, false);
  EXPECT_NE(text.find("fused: 1 of 2 steps waited longer for their launch than they ran. All waits together took 2.00 "
                      "us of 11.0 us"),
            std::string::npos)
      << text;
}

TEST(RunTable, TellsTheLoadOfExperts) {
  RunRecord record;
  record.expertLoads = {{.op = "permute", .owner = "permute", .tokens = {6, 2, 0, 0}}};
  EXPECT_NE(runTable(record, false)
                .find("Expert load: permute: 3.00x the mean load (most 6, mean 2.0 tokens, 2 of 4 experts"),
            std::string::npos);
}

TEST(RunTable, LeavesOutColumnsWithoutFigures) {
  RunRecord record;
  record.variants = {{.name = "fused",
                      .steps = {{.name = "a", .phase = "forward", .bytes = 8, .samplesNs = {1e3, 2e3}}},
                      .endToEndNs = {1e3, 2e3},
                      .instrumentedNs = {1e3, 2e3}}};
  const std::string text = runTable(record, false);
  EXPECT_NE(text.find("fused us"), std::string::npos) << text;
  for (const char* column : {"unfused us", "unfused GB/s", "x limit"})
    EXPECT_EQ(text.find(column), std::string::npos) << text;
}

}  // namespace
}  // namespace fuseline::cli
