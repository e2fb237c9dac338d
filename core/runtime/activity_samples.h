// ActivitySamples: device activities in the rounds of a measurement, by step and kind of work.
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

/// Device time of each step of the plan, in ns: concurrent activities of a step count once. activities: in the order of
/// their start.
std::vector<double> busyNsBySteps(std::span<const DeviceActivity> activities, std::size_t numSteps);

/// When the device began to work for each step; 0 for those that it did nothing for.
std::vector<double> startNsBySteps(std::span<const DeviceActivity> activities, std::size_t numSteps);

class ActivitySamples {
 public:
  /// Adds one run of the plan. Activities of a step with the same configuration are summed, including concurrent ones.
  /// Returns their time spans; TimelineSpan::activity is the index in the result of of().
  std::vector<TimelineSpan> addRound(std::span<const DeviceActivity> activities);

  /// In the order of execution on the device; one sample per round. step: an index in Plan::steps, or
  /// DeviceActivity::kNoStep for activities outside all steps.
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
