// Runs with round figures.
// SPDX-License-Identifier: Apache-2.0
#include "tests/core/export/sample_runs.h"

#include "core/export/exporter.h"

namespace fuseline {

namespace {

/// With three rounds no difference is statistically significant.
void repeatRounds(std::vector<double>& samplesNs) {
  const std::vector<double> rounds = samplesNs;
  for (int i = 0; i < 2; ++i) samplesNs.insert(samplesNs.end(), rounds.begin(), rounds.end());
}

}  // namespace

StepRecord sampleStep(std::string name, std::string phase, std::vector<std::string> ops) {
  return {.name = std::move(name),
          .phase = std::move(phase),
          .kernel = "BasicLinear",
          .ops = std::move(ops),
          .writes = "[3, 4] bf16",
          .flops = 24000,
          .bytes = 100,
          .samplesNs = {1000.0, 3000.0, 2000.0}};
}

RunRecord comparedRun() {
  RunRecord record{.createdWith = "fuseline 0.1.0",
                   .pipelineName = "mlp",
                   .pipelineHash = "abc",
                   .environment = {{"device", "CPU of 2"}}};
  record.settings = {.recipe = "None", .timing = StepTiming::Host, .seed = 7, .symbols = {{"M", 64}}};
  VariantRecord unfused{.name = "unfused",
                        .steps = {sampleStep("norm", "forward", {"norm"}), sampleStep("fc1", "forward", {"fc1"}),
                                  sampleStep("act", "forward", {"act"})},
                        .endToEndNs = {9000.0, 10000.0, 11000.0},
                        .instrumentedNs = {10000.0, 11000.0, 12000.0},
                        .peakBytes = 2048,
                        .launches = 3};
  VariantRecord fused{
      .name = "fused",
      .steps = {sampleStep("norm", "forward", {"norm"}), sampleStep("Epilogue(fc1, act)", "forward", {"fc1", "act"})},
      .endToEndNs = {4500.0, 5000.0, 5500.0},
      .instrumentedNs = {5000.0, 5500.0, 6000.0},
      .peakBytes = 1024,
      .launches = 2};
  fused.steps[1].rule = "Epilogue";
  record.variants = {unfused, fused};
  for (VariantRecord& variant : record.variants) {
    for (StepRecord& each : variant.steps) repeatRounds(each.samplesNs);
    for (auto* samples : {&variant.endToEndNs, &variant.instrumentedNs}) repeatRounds(*samples);
  }
  return record;
}

std::string exported(const char* format, const RunRecord& record) {
  const Result<std::string> text = findExporter(format)->write(record);
  return text ? *text : text.error().message;
}

}  // namespace fuseline
