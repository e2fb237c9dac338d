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

/// A kind that appears for the first time took no time in the rounds before.
ActivitySamples::Kind& ActivitySamples::kindOf(const DeviceActivity& activity) {
  const auto [found, isNew] =
      m_indices.try_emplace({activity.step, activity.name, activity.configuration}, m_kinds.size());
  if (isNew) {
    Kind& kind = m_kinds.emplace_back(Kind{.step = activity.step});
    kind.record.name = activity.name;
    kind.record.configuration = activity.configuration;
    kind.record.samplesNs.resize(m_numRounds, 0.0);
  }
  return m_kinds[found->second];
}

void ActivitySamples::addRound(std::span<const DeviceActivity> activities) {
  ++m_numRounds;
  for (Kind& kind : m_kinds) kind.record.samplesNs.push_back(0.0);
  for (const DeviceActivity& activity : activities) kindOf(activity).record.samplesNs.back() += activity.durationNs;
}

std::vector<ActivityRecord> ActivitySamples::of(std::size_t step) const {
  std::vector<ActivityRecord> records;
  for (const Kind& kind : m_kinds)
    if (kind.step == step) records.push_back(kind.record);
  return records;
}

}  // namespace fuseline
