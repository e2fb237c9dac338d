// Compares when a step was launched with when the device had ended all before it.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/launch_wait.h"

#include "core/profile/timeline.h"
#include "core/support/text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// When each step was launched, its last kernel included; empty where one is unknown.
std::map<int, double> launchEndsNs(const Timeline& timeline) {
  std::map<int, double> ends;
  for (const TimelineSpan& launch : timeline.launches) ends[launch.step] = launch.startNs + launch.durationNs;
  return ends.contains(-1) ? std::map<int, double>() : ends;
}

/// The steps one after the other; concurrent copies delay no step.
std::vector<TimelineBox> stepsInOrder(const VariantRecord& variant) {
  std::vector<TimelineBox> steps = layOut(variant).boxes;
  std::erase_if(steps, [](const TimelineBox& box) { return box.level != TimelineLevel::Step || box.lane != 0; });
  return steps;
}

/// By its kernels, or from mark to mark on the device's clock?
bool isTraced(const VariantRecord& variant) {
  return std::ranges::none_of(variant.timeline.spans, [](const TimelineSpan& span) { return span.activity < 0; });
}

/// Time of a step's own work, in ns. Traced times exclude the wait for its launch; times between marks include it.
double workNs(const VariantRecord& variant, const TimelineBox& step, double waitNs) {
  const auto durationNs = static_cast<double>(step.durationNs());
  return isTraced(variant) ? durationNs : durationNs - waitNs;
}

}  // namespace

std::vector<double> launchWaitsNs(const VariantRecord& variant) {
  const std::map<int, double> launchEnds = launchEndsNs(variant.timeline);
  if (launchEnds.empty()) return {};
  const bool isSeen = isTraced(variant);
  std::vector<double> waits(variant.steps.size(), 0.0);
  double readyNs = 0.0;
  for (const TimelineBox& step : stepsInOrder(variant)) {
    const auto latest = static_cast<double>(isSeen ? step.startNs : step.endNs);
    if (const auto launched = launchEnds.find(step.step); launched != launchEnds.end())
      waits[static_cast<std::size_t>(step.step)] = std::max(std::min(launched->second, latest) - readyNs, 0.0);
    readyNs = std::max(readyNs, static_cast<double>(step.endNs));
  }
  return waits;
}

std::vector<bool> waitedForLaunch(const VariantRecord& variant) {
  const std::vector<double> waits = launchWaitsNs(variant);
  std::vector<bool> waited(waits.size(), false);
  if (waits.empty()) return waited;
  for (const TimelineBox& box : stepsInOrder(variant)) {
    const auto step = static_cast<std::size_t>(box.step);
    waited[step] = waits[step] > workNs(variant, box, waits[step]);
  }
  return waited;
}

std::optional<LaunchWaits> launchWaits(const VariantRecord& variant) {
  const std::vector<double> waits = launchWaitsNs(variant);
  if (waits.empty()) return std::nullopt;
  LaunchWaits sum{.numWaiting = static_cast<int>(std::ranges::count(waitedForLaunch(variant), true))};
  for (const TimelineBox& step : stepsInOrder(variant)) {
    ++sum.numSteps;
    sum.waitedNs += waits[static_cast<std::size_t>(step.step)];
    sum.totalNs = std::max(sum.totalNs, static_cast<double>(step.endNs));
  }
  return sum;
}

std::string launchWaitText(const VariantRecord& variant) {
  const std::optional<LaunchWaits> waits = launchWaits(variant);
  if (!waits) return {};
  return fmt::format(
      "{}: {} of {} steps waited longer for their launch than they ran. All waits together took {} of {}.",
      variant.name, waits->numWaiting, waits->numSteps, formatDuration(waits->waitedNs),
      formatDuration(waits->totalNs));
}

}  // namespace fuseline
