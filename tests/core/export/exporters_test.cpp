// Files for other programs: traces that nest, tables that spreadsheets read.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/exporter.h"

#include "core/export/pipeline_exporter.h"
#include "core/support/json.h"
#include "tests/core/export/sample_runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

/// Forward fc1 and act, backward both; traced, with a concurrent copy.
RunRecord tracedRun() {
  RunRecord record{.createdWith = "fuseline 0.1.0", .pipelineName = "mlp", .environment = {{"device", "NVIDIA H200"}}};
  VariantRecord fused{.name = "fused",
                      .steps = {sampleStep("fc1", "forward", {"fc1"}), sampleStep("act", "forward", {"act"}),
                                sampleStep("R(act, fc1)", "backward", {"fc1", "act"})},
                      .endToEndNs = {5000.0, 5000.0, 5000.0},
                      .instrumentedNs = {6000.0, 7000.0, 6500.0},
                      .unattributed = {{"copy, host to device", "64 B", {100.0}}}};
  fused.steps[0].activities = {{"nvjet_hsh", "grid 8", {1000.0}}};
  fused.steps[1].activities = {{"gelu", "grid 4", {500.5}}};
  fused.steps[2].activities = {{"wgrad", "", {100.0}}, {"dgrad", "", {200.0}}};
  fused.timeline = {.round = 2,
                    .spans = {{.step = 0, .activity = 0, .startNs = 0.0, .durationNs = 1000.0},
                              {.step = -1, .activity = 0, .startNs = 500.0, .durationNs = 100.0},
                              {.step = 1, .activity = 0, .startNs = 1000.4, .durationNs = 500.5},
                              {.step = 2, .activity = 0, .startNs = 2000.0, .durationNs = 100.0},
                              {.step = 2, .activity = 1, .startNs = 2100.0, .durationNs = 200.0}}};
  record.variants = {fused};
  return record;
}

Json traceOf(const RunRecord& record) {
  const Result<std::string> text = findExporter("trace")->write(record);
  if (!text) throw std::runtime_error(text.error().message);
  return Json::parse(*text);
}

Json eventsOf(const Json& trace, const std::string& type) {
  Json events = Json::array();
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == type) events.push_back(event);
  return events;
}

TEST(Trace, HasStepsUnderTheNamesOfProfilers) {
  const Json trace = traceOf(tracedRun());
  EXPECT_EQ(trace["displayTimeUnit"], "ns");
  EXPECT_EQ(trace["otherData"]["device"], "NVIDIA H200");
  const Json events = eventsOf(trace, "X");
  ASSERT_EQ(events.size(), 10u) << "two passes, three steps, five activities";
  EXPECT_EQ(events[0]["name"], "forward");
  EXPECT_EQ(events[1]["name"], "fc1 (BasicLinear, forward) [3, 4] bf16");
  EXPECT_EQ(events[1]["args"]["ops"], Json::array({"fc1"}));
  EXPECT_EQ(events[1]["args"]["bytes"], 100);
  EXPECT_EQ(events[1]["args"]["median of all rounds (ns)"], 2000.0);
  EXPECT_EQ(events[2]["name"], "nvjet_hsh");
  EXPECT_EQ(events[2]["args"]["step"], "fc1");
}

TEST(Trace, CountsInMicrosecondsWithNanosecondsAsDecimals) {
  const Json gelu = eventsOf(traceOf(tracedRun()), "X")[4];
  EXPECT_EQ(gelu["name"], "gelu");
  EXPECT_EQ(gelu["ts"], 1.0);
  EXPECT_EQ(gelu["dur"], 0.501) << "from 1000.4 to 1500.9, in whole nanoseconds";
}

TEST(Trace, LeadsFromForwardToBackward) {
  const Json trace = traceOf(tracedRun());
  const Json from = eventsOf(trace, "s");
  const Json to = eventsOf(trace, "f");
  ASSERT_EQ(from.size(), 2u);
  ASSERT_EQ(to.size(), 2u);
  EXPECT_EQ(from[0]["ts"], 0.0);
  EXPECT_EQ(from[1]["ts"], 1.0);
  for (const Json& end : to) {
    EXPECT_EQ(end["ts"], 2.0);
    EXPECT_EQ(end["bp"], "e");
  }
  EXPECT_NE(from[0]["id"], from[1]["id"]);
}

TEST(Trace, CountsWhatAStepReaches) {
  const Json counters = eventsOf(traceOf(tracedRun()), "C");
  ASSERT_EQ(counters.size(), 12u) << "two counters of three steps, up and down again";
  EXPECT_EQ(counters[0]["name"], "GB/s");
  EXPECT_DOUBLE_EQ(counters[0]["args"]["GB/s"], 0.1);
  EXPECT_DOUBLE_EQ(counters[2]["args"]["TFLOP/s"], 0.024);
  EXPECT_EQ(counters[1]["args"]["GB/s"], 0.0);
}

TEST(Trace, HasAProcessForEachVariantAndAThreadForEachLane) {
  RunRecord record = tracedRun();
  record.variants.push_back(record.variants.front());
  record.variants[0].name = "unfused";
  std::map<std::pair<int, int>, std::string> names;
  for (const Json& event : eventsOf(traceOf(record), "M"))
    if (event["name"] == "process_name" || event["name"] == "thread_name")
      names[{event["pid"].get<int>(), event["name"] == "process_name" ? -1 : event["tid"].get<int>()}] =
          event["args"]["name"].get<std::string>();
  const std::map<std::pair<int, int>, std::string> expected = {
      {{1, -1}, "unfused (round 3 of 3)"}, {{1, 0}, "steps"}, {{1, 1}, "concurrent with the steps"},
      {{2, -1}, "fused (round 3 of 3)"},   {{2, 0}, "steps"}, {{2, 1}, "concurrent with the steps"}};
  EXPECT_EQ(names, expected);
}

/// act could begin at 1000 and is launched at 1300; it was seen to begin right after.
TEST(Trace, HasAThreadForTheHostThatLaunches) {
  RunRecord record = tracedRun();
  VariantRecord& fused = record.variants[0];
  fused.timeline.spans[2].startNs = 1310.0;
  fused.timeline.launches = {{.step = 0, .startNs = 0.0, .durationNs = 300.0},
                             {.step = 1, .startNs = 300.0, .durationNs = 1000.0},
                             {.step = 2, .startNs = 1300.0, .durationNs = 10.0}};
  const Json trace = traceOf(record);
  Json launches = Json::array();
  for (const Json& event : eventsOf(trace, "X"))
    if (event["cat"] == "launch") launches.push_back(event);
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_EQ(launches[1]["name"], "launch act");
  EXPECT_EQ(launches[1]["tid"], 2);
  EXPECT_EQ(launches[1]["dur"], 1.0);
  EXPECT_EQ(launches[1]["args"]["the device waited (ns)"], 300.0);
  const auto isNameOfThread = [](const Json& event) { return event["name"] == "thread_name" && event["tid"] == 2; };
  const Json names = eventsOf(trace, "M");
  const auto name = std::ranges::find_if(names, isNameOfThread);
  ASSERT_NE(name, names.end());
  EXPECT_EQ((*name)["args"]["name"], "launches by the host");
}

/// A note about all plans appears once in each process.
TEST(Trace, HasNotesAsSpansOfTheirOwn) {
  RunRecord record = tracedRun();
  EXPECT_TRUE(eventsOf(traceOf(record), "b").empty());
  record.stretchNotes = {{.variant = "fused", .startNs = 500.0, .endNs = 1500.0, .text = "waits"},
                         {.variant = "unfused", .startNs = 500.0, .endNs = 1500.0, .text = "of no process here"},
                         {.variant = "", .startNs = 800.0, .endNs = 1800.0, .text = "overlaps"}};
  const Json begins = eventsOf(traceOf(record), "b");
  const Json ends = eventsOf(traceOf(record), "e");
  ASSERT_EQ(begins.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(begins[0]["name"], "waits");
  EXPECT_EQ(begins[0]["ts"], 0.5);
  EXPECT_EQ(ends[0]["ts"], 1.5);
  EXPECT_EQ(begins[1]["name"], "overlaps");
  for (std::size_t i = 0; i < 2; ++i)
    for (const char* key : {"id", "cat", "pid", "name"}) EXPECT_EQ(begins[i][key], ends[i][key]);
  EXPECT_NE(begins[0]["id"], begins[1]["id"]);
}

TEST(Trace, NeedsATimeline) {
  RunRecord record = tracedRun();
  record.variants[0].timeline = {};
  record.settings.timing = StepTiming::None;
  const Result<std::string> text = findExporter("trace")->write(record);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message,
            "mlp: a trace needs a timeline, but this run has none: it was measured with --timing none, as whole runs "
            "only. Measure again: `fuseline run PIPELINE -o RUN.fuserun`.");
}

/// As a viewer reads it: each thread has a stack of open events, in which an event ends before its parent does.
void expectNesting(const Json& events) {
  std::map<std::pair<int, int>, std::vector<std::int64_t>> open;
  const auto nanoseconds = [](const Json& us) { return std::llround(us.get<double>() * 1e3); };
  for (const Json& event : events) {
    auto& ends = open[{event["pid"].get<int>(), event["tid"].get<int>()}];
    const std::int64_t start = nanoseconds(event["ts"]);
    const std::int64_t end = start + nanoseconds(event["dur"]);
    while (!ends.empty() && ends.back() <= start) ends.pop_back();
    RC_ASSERT((ends.empty() || end <= ends.back()));  // in parentheses, or the second half is always computed
    ends.push_back(end);
  }
}

TEST(Trace, NestsStrictlyWhateverRan) {
  EXPECT_TRUE(rc::check([] {
    RunRecord record = tracedRun();
    std::vector<TimelineSpan>& spans = record.variants[0].timeline.spans;
    for (TimelineSpan& span : spans) {
      span.startNs = *rc::gen::inRange(0, 100000) / 7.0;
      span.durationNs = *rc::gen::inRange(0, 50000) / 7.0;
    }
    expectNesting(eventsOf(traceOf(record), "X"));
  }));
}

TEST(CsvTable, HasALineForEachStepAndForTheWhole) {
  RunRecord record = tracedRun();
  record.variants[0].steps[1].name = "say \"act\", twice";
  record.variants[0].steps[2].isView = true;
  record.variants[0].steps[0].arithmetic = Arithmetic::F32;
  record.peaks = DevicePeaks{.copyGBps = 1, .fmaF32Gflops = 24};
  const Result<std::string> text = findExporter("csv")->write(record);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text,
            "variant,pass,step,rule,kernel,ops,writes,rounds,median_ns,lower_quartile_ns,upper_quartile_ns,minimum_ns,"
            "flops,bytes,flops_per_byte,gb_per_s,gflop_per_s,least_ns,times_from_roofline,bound,percentile5_ns,"
            "percentile95_ns\r\n"
            "fused,forward,fc1,,BasicLinear,fc1,\"[3, 4] bf16\",3,2000,1500,2500,1000,24000,100,240,0.05,12,1000,2,f32 "
            "compute,1100,2900\r\n"
            "fused,forward,\"say \"\"act\"\", twice\",,BasicLinear,act,\"[3, 4] bf16\",3,2000,1500,2500,1000,24000,100,"
            "240,0.05,12,,,,1100,2900\r\n"
            "fused,,end to end,,,,,3,5000,5000,5000,5000,,,,,,,,,5000,5000\r\n");
}

/// fused: norm takes 2 us, and of fc1's 2 us a kernel 1.5; estimates of fused ops are no lines.
TEST(FoldedStacks, HaveALineForWhatEachStepAndKernelTook) {
  RunRecord record = comparedRun();
  record.variants[0].steps[1].activities = {{"gemm<128; 64>", "", {1500.0, 1500.0, 1500.0}}};
  EXPECT_EQ(exported("folded", record),
            "unfused;forward;norm 2000\n"
            "unfused;forward;fc1 500\n"
            "unfused;forward;fc1;gemm<128, 64> 1500\n"
            "unfused;forward;act 2000\n"
            "fused;forward;norm 2000\n"
            "fused;forward;Epilogue(fc1, act) 2000\n");
}

TEST(FoldedStacks, SayWhatTheyNeed) {
  RunRecord record = comparedRun();
  record.settings.timing = StepTiming::None;
  for (VariantRecord& variant : record.variants)
    for (StepRecord& each : variant.steps) each.samplesNs.clear();
  EXPECT_EQ(exported("folded", record),
            "mlp: folded stacks need step times, but this run has none: it was measured with --timing none, as whole "
            "runs only. Measure again: `fuseline run PIPELINE -o RUN.fuserun`.");
}

TEST(Markdown, SetsEachFusedStepAboveItsOps) {
  const std::string text = exported("markdown", comparedRun());
  const std::string expected =
      "### `mlp`: 2.00x, from 10.000 us ± 10.0 % unfused to 5.000 us ± 10.0 % fused\n\n"
      "device `cpu (CPU of 2)` · pass `train (forward and backward)` · rules `all` · recipe `None` · symbols `M=64` · "
      "seed `7`\n\n"
      "| step | unfused us | ± % | fused us | ± % | speed-up | saved B | launches saved |\n"
      "| :-- | --: | --: | --: | --: | --: | --: | --: |\n"
      "| **`forward`** |  |  |  |  |  |  |  |\n"
      "| `norm` | 2.000 | 50.0 | 2.000 | 50.0 | (1.00x) |  |  |\n"
      "| **`Epilogue`** | 4.000 | 50.0 | 2.000 | 50.0 | 2.00x | 100.00 | 1 |\n"
      "| ├ `fc1` | 2.000 | 50.0 |  |  |  |  |  |\n"
      "| └ `act` | 2.000 | 50.0 |  |  |  |  |  |\n"
      "| sum of the steps | 6.000 | 50.0 | 4.000 | 50.0 | 1.50x | 100.00 | 1 |\n"
      "| **end to end** | 10.000 | 10.0 | 5.000 | 10.0 | 2.00x | 100.00 | 1 |\n\n"
      "| plan | unfused | fused | saved |\n"
      "| :-- | --: | --: | --: |\n"
      "| peak memory | 2 KiB | 1 KiB | 1 KiB |\n";
  EXPECT_EQ(text.substr(0, expected.size()), expected);
  EXPECT_NE(text.find("medians of 9 rounds after 3 warm-up runs, interleaving the unfused and the fused plan.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("which cost +10.0 % (unfused) and +10.0 % (fused).\n"), std::string::npos) << text;
}

TEST(Markdown, BeginsWithTheLabelOfTheRun) {
  RunRecord record = comparedRun();
  record.settings.label = "fp8, rebased";
  EXPECT_NE(exported("markdown", record).find("\n\nlabel `fp8, rebased` · device `cpu"), std::string::npos);
}

TEST(Markdown, TakesNoNameForMarkup) {
  RunRecord record = comparedRun();
  record.pipelineName = "a|b\n# @you #1 <b>";
  record.variants[0].steps[0].name = record.variants[1].steps[0].name = "`norm`";
  const std::string text = exported("markdown", record);
  EXPECT_TRUE(text.starts_with("### `a|b # @you #1 <b>`: 2.00x")) << text;
  EXPECT_NE(text.find("| `` `norm` `` | 2.000 |"), std::string::npos) << text;
}

TEST(Markdown, SaysWhatWasNotMeasured) {
  RunRecord record = comparedRun();
  record.variants.pop_back();
  record.settings.timing = StepTiming::None;
  record.isPartial = true;
  const std::string text = exported("markdown", record);
  EXPECT_TRUE(text.starts_with("### `mlp`: 10.000 us ± 10.0 % unfused\n")) << text;
  for (const char* sentence :
       {"- Partial: the run was cancelled", "- Only one plan was measured, so there is no speed-up.",
        "- Steps were not timed: whole passes only."})
    EXPECT_NE(text.find(sentence), std::string::npos) << sentence << "\n" << text;
  EXPECT_EQ(text.find("sum of the steps"), std::string::npos) << text;
}

// One that both lists have is one format, made from either.
TEST(Exporters, HaveNamesOfTheirOwn) {
  std::set<std::string_view> ofRuns, ofPipelines;
  for (const Exporter& exporter : exporters()) EXPECT_TRUE(ofRuns.insert(exporter.name).second) << exporter.name;
  for (const PipelineExporter& exporter : pipelineExporters()) {
    EXPECT_TRUE(ofPipelines.insert(exporter.name).second) << exporter.name;
    const Exporter* const twin = findExporter(exporter.name);
    EXPECT_TRUE(!twin || twin->ending == exporter.ending) << exporter.name;
  }
  EXPECT_EQ(findExporter("trase"), nullptr);
}

}  // namespace
}  // namespace fuseline
