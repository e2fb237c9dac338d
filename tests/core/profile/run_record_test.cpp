// Run records survive a file, and files that are no records are refused with a place.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_record.h"

#include "core/profile/cold_costs.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

RunRecord fullRecord() {
  RunRecord record{.createdWith = "fuseline 0.1.0",
                   .pipelineName = "mlp",
                   .pipelineHash = "fnv1a64:0123456789abcdef",
                   .pipeline = Json::parse(R"({"format":"fuseline-pipeline"})"),
                   .settings = {.device = "reference", .warmup = 2, .iterations = 7, .seed = 18446744073709551615u},
                   .recipe = Json::parse(R"({"name":"MXFP8BlockScaling"})"),
                   .switches = {.without = {"R@a"}, .with = {"S"}},
                   .environment = {{"device", "a \"quoted\" name"}, {"threads", "2"}},
                   .isPartial = true};
  record.timingNote = "why";
  record.numerics = {.fusion = {.isWithin = true, .worst = "y", .toleranceShare = 0.25},
                     .float32 = {.isWithin = false, .worst = "grad.x", .toleranceShare = 1.5},
                     .copies = {{.name = "a.input@rowwise",
                                 .owner = "a",
                                 .format = "e4m3 (mx_1x32)",
                                 .losses = {.amax = 4.0,
                                            .smallest = 0.5,
                                            .scaleInvMin = 0.25,
                                            .scaleInvMax = 0.5,
                                            .underflowShare = 0.125,
                                            .saturationShare = 0.0625,
                                            .meanSquaredError = 1e-6,
                                            .signalToNoise = 31.5}}}};
  record.peaks = DevicePeaks{.copyGBps = 12.5, .fmaF32Gflops = 100, .bf16Gflops = 0.5};
  record.peaksNote = "why not";
  record.settings.symbols = {{"M", 512}, {"H", -1}};
  record.settings.startsCold = true;
  record.settings.emulates = true;
  record.variants.push_back({.name = "fused",
                             .steps = {{.name = "R(a, b)",
                                        .rule = "R",
                                        .phase = "forward",
                                        .kernel = "k",
                                        .ops = {"a", "b"},
                                        .owners = {"a"},
                                        .writes = "[2] f32",
                                        .ways = {"by halves"},
                                        .arithmetic = Arithmetic::Bf16,
                                        .flops = 12,
                                        .bytes = 34,
                                        .samplesNs = {1.5, 2.25},
                                        .activities = {{"gemm", "grid 8", {1.0, 2.0}}}}},
                             .endToEndNs = {3, 4},
                             .instrumentedNs = {5, 6},
                             .preparationNs = 2.5e6,
                             .firstRunNs = 1.25e6,
                             .unattributed = {{"fill", "64 B", {0.5, 0.25}}},
                             .timeline = {.round = 1,
                                          .spans = {{.step = -1, .activity = 0, .durationNs = 0.25},
                                                    {.step = 0, .activity = 0, .startNs = 3.5, .durationNs = 2.0}},
                                          .launches = {{.step = 0, .startNs = 1.0, .durationNs = 1.5}}},
                             .peakBytes = 7,
                             .arenaBytes = 8,
                             .savedForBackwardBytes = 9,
                             .launches = 1});
  return record;
}

std::string refusal(const Json& json) {
  const Result<RunRecord> read = runRecordFromJson(json);
  return read ? "" : read.error().message;
}

TEST(RunRecord, IsTheSameAfterJson) {
  const Json json = toJson(fullRecord());
  const Result<RunRecord> read = runRecordFromJson(Json::parse(json.dump()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(toJson(*read).dump(), json.dump());
  EXPECT_EQ(read->settings.seed, 18446744073709551615u);
  EXPECT_EQ(read->environment, fullRecord().environment);
  EXPECT_EQ(read->switches, fullRecord().switches);
  EXPECT_EQ(read->variants[0].steps[0].samplesNs, (std::vector<double>{1.5, 2.25}));
  EXPECT_EQ(read->variants[0].steps[0].activities[0].samplesNs, (std::vector<double>{1.0, 2.0}));
  EXPECT_EQ(read->variants[0].unattributed[0].name, "fill");
  EXPECT_EQ(read->variants[0].numTraced(), 2);
  EXPECT_EQ(read->timingNote, "why");
  EXPECT_EQ(read->peaks, fullRecord().peaks);
  EXPECT_EQ(read->peaksNote, "why not");
  EXPECT_EQ(read->variants[0].steps[0].arithmetic, Arithmetic::Bf16);
  EXPECT_TRUE(read->isPartial);
}

TEST(RunRecord, SaysWhatComesBeforeTheRounds) {
  RunRecord record = fullRecord();
  EXPECT_EQ(firstRunText(record), "Setup took 2.50 ms fused, and the first run 1.25 ms; it is not counted.");
  record.variants.push_back(record.variants.front());
  record.variants.front().name = "unfused";
  EXPECT_EQ(firstRunText(record),
            "Setup took 2.50 ms unfused and 2.50 ms fused, and the first run 1.25 ms and 1.25 ms; it is not counted.");
  for (VariantRecord& variant : record.variants) variant.firstRunNs = 0.0;
  EXPECT_EQ(firstRunText(record), "Setup took 2.50 ms unfused and 2.50 ms fused; it is not counted.");
  for (VariantRecord& variant : record.variants) variant.preparationNs = 0.0;
  EXPECT_EQ(firstRunText(record), "");
  EXPECT_NE(cachesText(record), "");
  record.settings.startsCold = false;
  EXPECT_EQ(cachesText(record), "");
}

TEST(RunRecord, IsReadWithoutWhatOlderProgramsDidNotWrite) {
  Json json = toJson(fullRecord());
  json.erase("timingNote");
  json.erase("recipe");
  json["numerics"].erase("quantizedTensors");
  EXPECT_EQ(refusal(json), "");
  json.erase("numerics");
  json.erase("switches");
  json["variants"][0]["timeline"].erase("launches");
  json["variants"][0].erase("setupNs");
  json["variants"][0].erase("firstRunNs");
  json["settings"].erase("startsCold");
  json["settings"].erase("emulates");
  EXPECT_EQ(refusal(json), "");
  for (Json& step : json["variants"][0]["steps"]) step.erase("launches");
  EXPECT_EQ(runRecordFromJson(json)->variants[0].steps[0].launches, 1);
  EXPECT_EQ(refusal(json), "");
  json["variants"][0].erase("unattributed");
  json["variants"][0].erase("timeline");
  json["variants"][0]["steps"][0].erase("activities");
  json["variants"][0]["steps"][0].erase("output");
  json["variants"][0]["steps"][0].erase("algorithms");
  json["variants"][0]["steps"][0].erase("arithmetic");
  json.erase("peaks");
  json.erase("peaksNote");
  EXPECT_EQ(refusal(json), "");
  EXPECT_FALSE(runRecordFromJson(json)->peaks);
}

TEST(RunRecord, ReadsTheNamesOfOlderPrograms) {
  RunRecord record = fullRecord();
  record.roundsId = "r1";
  record.rowNotes = {{.step = "a", .phase = "forward", .text = "slow"}};
  record.stretchNotes = {{.startNs = 1.0, .endNs = 2.0, .text = "gap"}};
  record.variants[0].hostBytes = 5;
  record.variants[0].launching = "captured and replayed";
  StepRecord& step = record.variants[0].steps[0];
  step.absorbs = {"b.quantize_input"};
  step.ways = {"by cuBLASLt"};
  step.writes = "[4] bf16";
  step.wireBytes = 6;
  record.settings.measuresPeaks = !RunSpec().measuresPeaks;
  const std::string present = toJson(record).dump();
  std::string former = present;
  for (const auto& [now, before] : {std::pair<std::string, std::string>("timeRangeNotes", "stretchNotes"),
                                    {"stepNotes", "rowNotes"},
                                    {"interleavedGroupId", "roundsId"},
                                    {"mergedSteps", "absorbs"},
                                    {"algorithms", "ways"},
                                    {"output", "writes"},
                                    {"bytesSentPerRank", "wireBytes"},
                                    {"offloadedBytes", "hostBytes"},
                                    {"setupNs", "preparationNs"},
                                    {"launchMode", "launching"},
                                    {"quantizedTensors", "copies"},
                                    {"peaks", "roofs"},
                                    {"peaksNote", "roofsNote"},
                                    {"measuresPeaks", "measuresRoofs"}}) {
    const std::string key = "\"" + now + "\":";
    const std::size_t at = former.find(key);
    ASSERT_NE(at, std::string::npos) << now;
    former.replace(at, key.size(), "\"" + before + "\":");
  }
  const Result<RunRecord> read = runRecordFromJson(Json::parse(former));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(toJson(*read).dump(), present);
}

TEST(RunRecord, RefusesPeaksThatAreNone) {
  Json json = toJson(fullRecord());
  json["peaks"]["copyGBps"] = -1.0;
  EXPECT_EQ(refusal(json), "/peaks/copyGBps: expected a number from 0 to 1e+18, found -1.0.");
  json["peaks"].erase("copyGBps");
  EXPECT_EQ(refusal(json), "/peaks/copyGBps: this field is missing.");
  json["peaks"] = nullptr;
  EXPECT_EQ(refusal(json), "");
}

TEST(RunRecord, RefusesATimelineOfOtherSteps) {
  const auto refusalWith = [](const char* key, Json value) {
    Json json = toJson(fullRecord());
    json["variants"][0]["timeline"]["spans"][1][key] = std::move(value);
    return refusal(json);
  };
  const std::string place = "/variants/0/timeline/spans/1/";
  EXPECT_EQ(refusalWith("step", 1), place + "step: expected -1, or one of the variant's 1 steps, found 1.");
  EXPECT_EQ(refusalWith("activity", 1), place + "activity: expected -1, or one of 1 activities, found 1.");
  EXPECT_EQ(refusalWith("startNs", -1.0), place + "startNs: expected a number from 0 to 1e+18, found -1.0.");
  EXPECT_EQ(refusalWith("activity", -1), "");
}

TEST(RunRecord, RefusesLaunchesOfOtherSteps) {
  const auto refusalWith = [](const char* key, Json value) {
    Json json = toJson(fullRecord());
    json["variants"][0]["timeline"]["launches"][0][key] = std::move(value);
    return refusal(json);
  };
  const std::string place = "/variants/0/timeline/launches/0/";
  EXPECT_EQ(refusalWith("step", -2), place + "step: expected -1, or one of the variant's 1 steps, found -2.");
  EXPECT_EQ(refusalWith("durationNs", -1.0), place + "durationNs: expected a number from 0 to 1e+18, found -1.0.");
  EXPECT_EQ(refusalWith("step", -1), "");
}

/// Times, counts, bytes and FLOP that nothing has.
TEST(RunRecord, RefusesAbsurdNumbers) {
  const Json whole = toJson(fullRecord());
  const std::string variant = "/variants/0/";
  for (const char* place : {"endToEndNs/1", "setupNs", "peakBytes", "launches", "steps/0/flops", "steps/0/bytes",
                            "steps/0/launches", "steps/0/samplesNs/0", "steps/0/activities/0/samplesNs/1",
                            "steps/0/hiddenNs", "timeline/round", "timeline/spans/1/startNs"})
    for (const Json& value : {Json(-1), Json(2'000'000'000'000'000'000)}) {
      Json json = whole;
      json[Json::json_pointer(variant + place)] = value;
      const std::string message = refusal(json);
      EXPECT_EQ(message.find(variant + place + ": expected "), 0U) << place << ": " << message;
    }
}

TEST(RunRecord, NamesAStepAsProfilersShowIt) {
  EXPECT_EQ(fullRecord().variants[0].steps[0].range(), "R(a, b) (k, forward) [2] f32");
  EXPECT_EQ(rangeName("a", "k", "backward", ""), "a (k, backward)");
}

TEST(RunRecord, NamesItsFormatAndVersion) {
  const Json json = toJson(RunRecord{});
  EXPECT_EQ(json["format"], "fuseline-run");
  EXPECT_EQ(json["formatVersion"]["major"], 1);
}

TEST(RunRecord, RefusesAnotherFormat) {
  Json json = toJson(fullRecord());
  json["format"] = "fuseline-pipeline";
  EXPECT_EQ(refusal(json),
            "/format: expected \"fuseline-run\", found \"fuseline-pipeline\". `fuseline run PIPELINE -o RUN.fuserun` "
            "writes run files.");
}

TEST(RunRecord, RefusesANewerMajorVersion) {
  Json json = toJson(fullRecord());
  json["formatVersion"]["major"] = 2;
  EXPECT_NE(refusal(json).find("newer Fuseline"), std::string::npos);
}

TEST(RunRecord, IgnoresFieldsOfANewerMinorVersion) {
  Json json = toJson(fullRecord());
  json["formatVersion"]["minor"] = 9;
  json["variants"][0]["somethingNew"] = 1;
  EXPECT_EQ(refusal(json), "");
}

TEST(RunRecord, SaysWhichFieldIsWrong) {
  Json json = toJson(fullRecord());
  json["variants"][0]["steps"][0]["flops"] = "many";
  EXPECT_EQ(refusal(json), "/variants/0/steps/0/flops: expected an integer, found \"many\".");
}

TEST(RunRecord, SaysWhichFieldIsMissing) {
  Json json = toJson(fullRecord());
  json["variants"][0].erase("peakBytes");
  EXPECT_EQ(refusal(json), "/variants/0/peakBytes: this field is missing.");
}

TEST(RunRecord, RefusesWhatIsNoObject) {
  EXPECT_NE(refusal(Json::array()), "");
  EXPECT_NE(refusal(Json(3)), "");
}

TEST(RunRecord, KnowsItsDeviceAndItsTitle) {
  RunRecord record = fullRecord();
  EXPECT_EQ(record.deviceName(), "a \"quoted\" name");
  EXPECT_EQ(record.fact("threads"), "2");
  record.environment.clear();
  EXPECT_EQ(record.deviceName(), "reference");
  EXPECT_EQ(record.title(), "mlp");
  record.pipelineName = "mlp.fuseline";
  EXPECT_EQ(record.title(), "mlp");
}

TEST(VariantRecord, FindsAStepByNameAndPhase) {
  VariantRecord variant;
  variant.steps = {{.name = "fc", .phase = "forward", .flops = 1}, {.name = "fc", .phase = "backward", .flops = 2}};
  ASSERT_NE(variant.find("fc", "backward"), nullptr);
  EXPECT_EQ(variant.find("fc", "backward")->flops, 2);
  EXPECT_EQ(variant.find("fc", "sideways"), nullptr);
}

TEST(VariantRecord, SaysOfEveryRoundWhatNoStepLaunched) {
  VariantRecord variant{.name = "fused", .instrumentedNs = {100, 200}};
  EXPECT_EQ(variant.unattributedNs(), (std::vector<double>{0, 0}));
  variant.unattributed = {{"fill", "64 B", {3, 4}}, {"copy", "8 B", {10, 20}}};
  EXPECT_EQ(variant.unattributedNs(), (std::vector<double>{13, 24}));
}

}  // namespace
}  // namespace fuseline
