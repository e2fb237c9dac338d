// Sums over steps; nothing overlaps.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/roofline.h"

#include "core/profile/launch_wait.h"
#include "core/profile/stats.h"
#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"
#include "core/quant/data_sheets.h"

#include <algorithm>

namespace fuseline {

namespace {

Arithmetic arithmeticOfProduct(const Graph& graph, NodeId product, Phase phase) {
  if (multipliesCodes(graph.node(product), phase == Phase::Backward)) return Arithmetic::Fp8;
  return graph.spec(product, OperandKind::Input, 0).dtype == DType::F32 ? Arithmetic::F32 : Arithmetic::Bf16;
}

/// Least times of one step by its two peaks.
struct LeastTime {
  double memoryNs = 0.0;
  double computeNs = 0.0;
  ComputePeak peak;

  double ns() const { return std::max(memoryNs, computeNs); }
  Bound bound() const {
    if (ns() <= 0.0) return Bound::Unknown;
    return computeNs > memoryNs ? Bound::Compute : Bound::Memory;
  }
};

LeastTime leastTime(const StepWork& step, const DevicePeaks& peaks) {
  if (peaks.copyGBps <= 0.0 || step.arithmetic == Arithmetic::None) return {};
  LeastTime least{.memoryNs = step.bytes / peaks.copyGBps, .peak = computePeak(peaks, step.arithmetic)};
  if (least.peak.gflops > 0.0) least.computeNs = step.flops / least.peak.gflops;
  return least;
}

/// The host's mean time for a launch if the device waits for the host; 0: it does not, or it is not known.
double waitedForLaunchNs(const VariantRecord& variant) {
  if (variant.launchNs.empty() || variant.launches == 0) return 0.0;
  double stepsNs = 0.0;
  for (const StepRecord& step : variant.steps)
    if (!step.isView) stepsNs += summarize(step.samplesNs).median;
  const double launchNs = summarize(variant.launchNs).median;
  return stepsNs > 0.0 && launchNs > stepsNs ? launchNs / static_cast<double>(variant.launches) : 0.0;
}

/// Launches that are replayed are not those that were timed one by one.
std::vector<bool> knownWaits(const VariantRecord& variant) {
  return variant.launching.ends_with("replayed") ? std::vector<bool>() : waitedForLaunch(variant);
}

/// All but the time. The least time of a whole is known where that of each part is.
void add(Efficiency& sum, const Efficiency& part) {
  sum.flops += part.flops;
  sum.bytes += part.bytes;
  sum.leastNs = sum.leastNs > 0.0 && part.leastNs > 0.0 ? sum.leastNs + part.leastNs : 0.0;
  if (part.bound == sum.bound && part.peak == sum.peak) return;
  sum.bound = Bound::Several;
  sum.peak = Arithmetic::None;
}

}  // namespace

Arithmetic arithmeticOf(const Graph& graph, const Step& step) {
  if (step.transfer || step.collective) return Arithmetic::None;
  const auto isLink = [&](NodeId id) { return graph.node(id).operation->category == "Communication"; };
  if (std::ranges::any_of(step.nodes, isLink)) return Arithmetic::None;
  const auto isProduct = [&](NodeId id) {
    return graph.node(id).operation->isQuantizable || isAttention(graph.node(id));
  };
  const auto product = std::ranges::find_if(step.nodes, isProduct);
  return product == step.nodes.end() ? Arithmetic::F32 : arithmeticOfProduct(graph, *product, step.phase);
}

std::vector<StepWork> workOf(const Graph& graph, const Plan& plan) {
  std::vector<StepWork> work;
  for (const Step& step : plan.steps)
    if (step.isWork())
      work.push_back({.arithmetic = arithmeticOf(graph, step),
                      .flops = static_cast<double>(step.flops),
                      .bytes = static_cast<double>(step.bytesRead + step.bytesWritten)});
  return work;
}

StepWork workOf(const StepRecord& step) {
  return {.arithmetic = step.arithmetic,
          .flops = static_cast<double>(step.flops),
          .bytes = static_cast<double>(step.bytes)};
}

std::vector<StepWork> workOf(const VariantRecord& variant) {
  std::vector<StepWork> work;
  for (const StepRecord& step : variant.steps)
    if (!step.isView) work.push_back(workOf(step));
  return work;
}

std::optional<DevicePeaks> publishedPeaks(std::string_view device) {
  const std::optional<DataSheet> sheet = dataSheetOf(device);
  if (!sheet) return std::nullopt;
  return DevicePeaks{.copyGBps = sheet->memoryGBps,
                     .fmaF32Gflops = sheet->f32Gflops,
                     .bf16Gflops = sheet->bf16Gflops,
                     .fp8Gflops = sheet->fp8Gflops};
}

double leastTimeNs(const std::vector<StepWork>& work, const DevicePeaks& peaks) {
  double timeNs = 0.0;
  for (const StepWork& step : work) timeNs += leastTime(step, peaks).ns();
  return timeNs;
}

Roofline::Roofline(const RunRecord& record, const VariantRecord& variant)
    : m_peaks(record.peaks.value_or(DevicePeaks{})),
      m_variant(variant),
      m_waited(knownWaits(variant)),
      m_launchNs(waitedForLaunchNs(variant)) {}

bool Roofline::waitsForLaunch(const StepRecord& step, double timeNs) const {
  if (m_waited.empty()) return timeNs < m_launchNs * static_cast<double>(step.launches);
  return m_waited[static_cast<std::size_t>(&step - m_variant.steps.data())];
}

Efficiency Roofline::of(const StepRecord& step) const {
  const LeastTime least = leastTime(workOf(step), m_peaks);
  Efficiency made{.timeNs = summarize(step.samplesNs).median,
                  .flops = static_cast<double>(step.flops),
                  .bytes = static_cast<double>(step.bytes),
                  .leastNs = least.ns(),
                  .bound = least.bound()};
  if (waitsForLaunch(step, made.timeNs)) made.bound = Bound::Launch;
  if (made.bound == Bound::Compute) made.peak = least.peak.arithmetic;
  return made;
}

Efficiency Roofline::of(const Steps& steps) const {
  Steps working = steps;
  std::erase_if(working, [](const StepRecord* step) { return step->isView; });
  if (working.empty()) return {};
  Efficiency sum = of(*working.front());
  for (std::size_t i = 1; i < working.size(); ++i) add(sum, of(*working[i]));
  sum.timeNs = summarize(sumPerRound(working)).median;
  return sum;
}

}  // namespace fuseline
