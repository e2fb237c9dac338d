// ActivitySamples: what a device did in the rounds of a measurement, by step and kind of work.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/runtime/backend.h"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace fuseline {

/// How long the device worked for each step of the plan: what it did for one at once counts once. activities: in the
/// order in which they began.
std::vector<double> busyNsBySteps(std::span<const DeviceActivity> activities, std::size_t numSteps);

/// When the device began to work for each step; 0 for those that it did nothing for.
std::vector<double> startNsBySteps(std::span<const DeviceActivity> activities, std::size_t numSteps);

class ActivitySamples {
 public:
  /// One run of the plan. What a step does several times, in the same configuration, is added, also what is done at
  /// once. Returns when each of them ran; TimelineSpan::activity is its index in what of() returns.
  std::vector<TimelineSpan> addRound(std::span<const DeviceActivity> activities);

  /// In the order in which the device did them; a sample a round. step: an index in Plan::steps, or
  /// DeviceActivity::kNoStep for what belongs to none.
  std::vector<ActivityRecord> of(std::size_t step) const;

 private:
  struct Kind {
    std::size_t step = 0;
    int index = 0;  // in of(step)
    ActivityRecord record;
  };
  Kind& kindOf(const DeviceActivity& activity);

  std::vector<Kind> m_kinds;
  std::map<std::tuple<std::size_t, std::string, std::string>, std::size_t> m_indices;
  std::map<std::size_t, int> m_numKinds;  // by step
  std::size_t m_numRounds = 0;
};

}  // namespace fuseline
