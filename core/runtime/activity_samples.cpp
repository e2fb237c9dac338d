// Adds up activities by step, name and configuration.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/activity_samples.h"

#include <algorithm>

namespace fuseline {

std::vector<double> busyNsBySteps(std::span<const DeviceActivity> activities, std::size_t numSteps) {
  std::vector<double> busyNs(numSteps, 0.0);
  std::vector<double> endNs(numSteps, 0.0);
  for (const DeviceActivity& activity : activities) {
    if (activity.step == DeviceActivity::kNoStep) continue;
    double& end = endNs.at(activity.step);
    const double finish = activity.startNs + activity.durationNs;
    busyNs[activity.step] += std::max(finish - std::max(activity.startNs, end), 0.0);
    end = std::max(end, finish);
  }
  return busyNs;
}

std::vector<double> startNsBySteps(std::span<const DeviceActivity> activities, std::size_t numSteps) {
  std::vector<double> startNs(numSteps, 0.0);
  std::vector<bool> isKnown(numSteps, false);
  for (const DeviceActivity& activity : activities) {
    if (activity.step == DeviceActivity::kNoStep || isKnown.at(activity.step)) continue;
    isKnown[activity.step] = true;
    startNs[activity.step] = activity.startNs;
  }
  return startNs;
}

/// A kind that appears for the first time took no time in the rounds before.
ActivitySamples::Kind& ActivitySamples::kindOf(const DeviceActivity& activity) {
  const auto [found, isNew] =
      m_indices.try_emplace({activity.step, activity.name, activity.configuration}, m_kinds.size());
  if (isNew) {
    Kind& kind = m_kinds.emplace_back(Kind{.step = activity.step, .index = m_numKinds[activity.step]++});
    kind.record.name = activity.name;
    kind.record.configuration = activity.configuration;
    kind.record.samplesNs.resize(m_numRounds, 0.0);
  }
  return m_kinds[found->second];
}

std::vector<TimelineSpan> ActivitySamples::addRound(std::span<const DeviceActivity> activities) {
  ++m_numRounds;
  for (Kind& kind : m_kinds) kind.record.samplesNs.push_back(0.0);
  std::vector<TimelineSpan> spans;
  for (const DeviceActivity& activity : activities) {
    Kind& kind = kindOf(activity);
    kind.record.samplesNs.back() += activity.durationNs;
    spans.push_back({.step = activity.step == DeviceActivity::kNoStep ? -1 : static_cast<int>(activity.step),
                     .activity = kind.index,
                     .startNs = activity.startNs,
                     .durationNs = activity.durationNs});
  }
  return spans;
}

std::vector<ActivityRecord> ActivitySamples::of(std::size_t step) const {
  std::vector<ActivityRecord> records;
  for (const Kind& kind : m_kinds)
    if (kind.step == step) records.push_back(kind.record);
  return records;
}

}  // namespace fuseline
