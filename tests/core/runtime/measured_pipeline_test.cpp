// The settings of a run that replaced the document's own are in the document that it is shown with.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/measured_pipeline.h"

#include "core/document/file_format.h"
#include "core/runtime/pipeline_run.h"
#include "tests/support/one_backend.h"
#include "tests/support/traced_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

namespace fuseline {
namespace {

std::string pipelineText(const std::string& recipe = "null") {
  return R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "symbols": {"M": 16, "H": 32},
    "recipe": )" +
         recipe + R"(, "pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
    "ops": [{"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": ["H"]}},
            {"id": "fc", "op": "Linear", "attributes": {"in_features": "H", "out_features": "2*H", "bias": false}},
            {"id": "act", "op": "GELU", "attributes": {}}],
    "wires": [["x", "norm.x"], ["norm.y", "fc.x"], ["fc.y", "act.x"]],
    "outputs": [{"id": "y", "from": "act.y"}]}})";
}

/// The reference, with another name.
class RenamedBackend : public Backend {
 public:
  explicit RenamedBackend(DeviceInfo info) : m_info(std::move(info)) {}
  const DeviceInfo& device() const override { return m_info; }
  Verdict supports(const KernelQuery& query) const override { return m_inner->supports(query); }
  Result<std::unique_ptr<Kernel>> compile(const Graph& graph, const Plan& plan, const Step& step,
                                          const CompileOptions& options) override {
    return m_inner->compile(graph, plan, step, options);
  }
  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t sizeBytes) override {
    return m_inner->allocate(sizeBytes);
  }
  void upload(std::byte* device, std::span<const std::byte> host) override { m_inner->upload(device, host); }
  void download(std::span<std::byte> host, const std::byte* device) override { m_inner->download(host, device); }
  void synchronize() override {}
  std::vector<std::pair<std::string, std::string>> conditions() override { return {{"clocks", "1755 MHz"}}; }

 private:
  DeviceInfo m_info;
  std::shared_ptr<Backend> m_inner = makeReferenceBackend();
};

/// A backend with measured peaks.
class BackendWithPeaks final : public RenamedBackend {
 public:
  BackendWithPeaks() : RenamedBackend({.id = "peaked"}) {}
  Result<DevicePeaks> measurePeaks() override { return DevicePeaks{.copyGBps = 8, .fmaF32Gflops = 4}; }
};

Result<std::unique_ptr<PipelineRun>> prepare(const std::string& text, PipelineRunOptions options,
                                             std::shared_ptr<Backend> backend) {
  options.settings.device = backend->device().id;
  options.settings.warmup = 0;
  options.settings.iterations = 1;
  return PipelineRun::prepare(parseDocument(text), "small", std::move(options),
                              testing::OneBackend(std::move(backend)));
}

RunRecord measuredRun(const std::string& text, PipelineRunOptions options = {},
                      std::shared_ptr<Backend> backend = makeReferenceBackend()) {
  auto run = prepare(text, std::move(options), std::move(backend));
  EXPECT_TRUE(run) << run.error().message;
  return *(*run)->measure();
}

std::string refusal(const RunRecord& run) {
  const Result<MeasuredPipeline> measured = measuredPipeline(run);
  return measured ? "" : measured.error().message;
}

using Changes = std::vector<std::string>;

TEST(MeasuredPipeline, IsTheDocumentWhereTheRunChangedNothing) {
  const std::string text = pipelineText(R"({"name": "Float8CurrentScaling", "overrides": [{"gemm": "wgrad",
    "format": "high_precision"}]})");
  const Result<MeasuredPipeline> measured = measuredPipeline(measuredRun(text));
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(serialize(measured->document), serialize(parseDocument(text).document));
  EXPECT_EQ(measured->changes, Changes());
}

TEST(MeasuredRun, SaysWhereAndWhenItWasMeasured) {
  const RunRecord run = measuredRun(pipelineText());
  EXPECT_EQ(run.deviceName(), makeReferenceBackend()->device().name);
  EXPECT_TRUE(std::regex_match(run.fact("measured at"), std::regex(R"(2\d{3}-\d\d-\d\d \d\d:\d\d UTC)")))
      << run.fact("measured at");
}

TEST(MeasuredRun, SaysWhyItsStepsWereTimedByEvents) {
  for (const testing::TraceFaults& faults :
       {testing::TraceFaults{.numLosses = testing::kAlways}, testing::TraceFaults{.numStarts = 0}}) {
    const RunRecord run =
        measuredRun(pipelineText(), {.settings = {.timing = StepTiming::Cupti}}, testing::tracedBackend(faults));
    EXPECT_EQ(run.settings.timing, StepTiming::Events);
    EXPECT_EQ(run.timingNote, faults.numStarts == 0 ? "the trace does not start." : "records were lost.");
    for (const VariantRecord& variant : run.variants) {
      EXPECT_FALSE(variant.endToEndNs.empty());
      for (const StepRecord& step : variant.steps) EXPECT_FALSE(step.samplesNs.empty()) << step.name;
    }
    EXPECT_TRUE(runRecordFromJson(toJson(run))) << "a file that can be opened";
  }
}

TEST(MeasuredRun, HasThePeaksOfItsDeviceAndTheArithmeticOfItsSteps) {
  const PipelineRunOptions wanted{.settings = {.pass = ExecutionMode::Inference, .measuresPeaks = true},
                                  .variants = {"unfused"}};
  const auto run = prepare(pipelineText(), wanted, std::make_shared<BackendWithPeaks>());
  ASSERT_TRUE(run) << run.error().message;
  std::vector<std::string> stages;
  const Result<RunRecord> record =
      (*run)->measure([&](std::string_view stage, int, int) { stages.emplace_back(stage); });
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(stages, (std::vector<std::string>{"measuring", "measuring peaks"})) << "after the rounds";
  EXPECT_EQ(record->peaks, (DevicePeaks{.copyGBps = 8, .fmaF32Gflops = 4}));
  EXPECT_EQ(record->peaksNote, "");
  std::vector<Arithmetic> arithmetics;
  for (const StepRecord& step : record->variants[0].steps) arithmetics.push_back(step.arithmetic);
  EXPECT_EQ(arithmetics, (std::vector{Arithmetic::F32, Arithmetic::Bf16, Arithmetic::F32})) << "norm, fc, act";
}

TEST(MeasuredRun, SaysWhyThereAreNoPeaks) {
  const RunRecord none = measuredRun(pipelineText(), {.settings = {.measuresPeaks = true}});
  EXPECT_FALSE(none.peaks);
  EXPECT_EQ(none.peaksNote, "reference: it is not a performance target, so it has no peaks.");
  const RunRecord unwanted = measuredRun(pipelineText(), {}, std::make_shared<BackendWithPeaks>());
  EXPECT_FALSE(unwanted.peaks);
  EXPECT_EQ(unwanted.peaksNote, "");
}

TEST(MeasuredPipeline, HasTheSymbolsPassRecipeRulesAndSwitchesOfTheRun) {
  const RunRecord run = measuredRun(pipelineText(), {.settings = {.pass = ExecutionMode::Inference,
                                                                  .rules = RuleBook::Te,
                                                                  .recipe = "MXFP8BlockScaling",
                                                                  .symbols = {{"M", 64}}},
                                                     .switches = {.without = {"ForwardQuantize@norm"}}});
  const Result<MeasuredPipeline> measured = measuredPipeline(run);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->pass, ExecutionMode::Inference);
  EXPECT_EQ(measured->document.symbols()["M"], 64);
  EXPECT_EQ(measured->document.recipe(), Json::parse(R"({"name": "MXFP8BlockScaling"})"));
  EXPECT_EQ(measured->document.fusion(), Json::parse(R"({"rules": "te", "without": ["ForwardQuantize@norm"]})"));
  EXPECT_EQ(measured->changes,
            (Changes{"M = 64", "recipe MXFP8BlockScaling", "rules te", "without ForwardQuantize@norm"}));
}

TEST(MeasuredPipeline, PutsARecipeOfTheSameNameInPlaceOfTheDocumentsOwn) {
  const std::string text = pipelineText(R"({"name": "DelayedScaling", "margin": 3})");
  const RunRecord run = measuredRun(text, {.settings = {.recipe = "DelayedScaling"}});
  const Result<MeasuredPipeline> measured = measuredPipeline(run);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->document.recipe(), Json::parse(R"({"name": "DelayedScaling"})"));
}

TEST(MeasuredPipeline, OfAnOlderProgramHasTheRecipeThatTheSettingsName) {
  RunRecord run =
      measuredRun(pipelineText(), {.settings = {.recipe = "DelayedScaling", .recipeFields = {{"margin", "2"}}}});
  run.recipe = nullptr;
  const Result<MeasuredPipeline> measured = measuredPipeline(run);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->document.recipe()["fields"]["margin"], 2);
  EXPECT_EQ(measured->changes, Changes{"recipe DelayedScaling margin=2"});
}

TEST(MeasuredRun, SaysWhatTheDeviceWasLike) {
  const auto gpu = std::make_shared<RenamedBackend>(DeviceInfo{.id = "gpu", .name = "a GPU", .architecture = "sm_90"});
  EXPECT_EQ(measuredRun(pipelineText(), {}, gpu).fact("clocks"), "1755 MHz");
  EXPECT_EQ(measuredRun(pipelineText()).fact("clocks"), "");
}

TEST(PreparedRun, RefusesARecipeThatTheTensorCoresOfTheDeviceCannotTake) {
  const auto onArchitecture = [](const char* architecture) {
    const std::string text = pipelineText(R"({"name": "MXFP8BlockScaling"})");
    const auto backend =
        std::make_shared<RenamedBackend>(DeviceInfo{.id = "gpu", .name = "a GPU", .architecture = architecture});
    const auto run = prepare(text, {}, backend);
    return run ? "" : run.error().message;
  };
  EXPECT_EQ(onArchitecture("sm_90"),
            "small: gpu: MXFP8BlockScaling needs compute capability 10.0 (sm_100) or newer, but this device has 9.0 "
            "(sm_90). Valid values: None, DelayedScaling, Float8CurrentScaling, Float8BlockScaling. --emulate runs its "
            "GEMMs in high precision, at the speed of high precision.");
  EXPECT_EQ(onArchitecture("sm_100"), "");
  EXPECT_EQ(onArchitecture("avx512"), "");
}

TEST(PreparedRun, AcceptsAnyRecipeThatIsToBeEmulated) {
  const auto emulated = [](const char* architecture, const std::string& recipe) {
    const auto backend =
        std::make_shared<RenamedBackend>(DeviceInfo{.id = "gpu", .name = "a GPU", .architecture = architecture});
    const auto run = prepare(pipelineText(recipe), {.settings = {.emulates = true}}, backend);
    return run ? "" : run.error().message;
  };
  EXPECT_EQ(emulated("sm_80", R"({"name": "MXFP8BlockScaling"})"), "");
  EXPECT_EQ(emulated("sm_90", R"({"name": "Float8BlockScaling", "use_power_2_scales": false})"), "");
  const std::string onBlackwell = emulated("sm_100", R"({"name": "Float8BlockScaling", "use_power_2_scales": false})");
  EXPECT_NE(onBlackwell.find("use_power_2_scales is false"), std::string::npos) << onBlackwell;
}

TEST(MeasuredPipeline, IsPlannedAsItWasMeasured) {
  const PipelineRunOptions options{.settings = {.recipe = "Float8CurrentScaling", .symbols = {{"M", 48}}},
                                   .switches = {.without = {"ForwardLinearEpilogue"}}};
  const RunRecord run = measuredRun(pipelineText(), options);
  const Result<MeasuredPipeline> measured = measuredPipeline(run);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(differingSteps(run, analyze(measured->document)), Changes());
  const Changes differing = differingSteps(run, analyze(parseDocument(pipelineText()).document));
  EXPECT_NE(std::ranges::find(differing, "ForwardLinearEpilogue(fc, act) (fused, forward)"), differing.end());
}

TEST(MeasuredPipeline, RefusesWhatDoesNotFitTheRun) {
  RunRecord run = measuredRun(pipelineText());
  run.settings.symbols = {{"Q", 3}};
  EXPECT_EQ(refusal(run),
            "/settings/symbols/Q: the run set Q to 3, but its pipeline has no symbol Q. Measure again: fuseline run "
            "PIPELINE --set Q=3.");
  run.settings.symbols.clear();
  run.pipeline = Json::array();
  EXPECT_TRUE(refusal(run).starts_with("the pipeline in this run cannot be used: ")) << refusal(run);
}

}  // namespace
}  // namespace fuseline
