// Time that a device waited for the host to launch a step, in the round of a timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// One per step: from the end of all earlier work on the device until the step's launch. If steps are timed between
/// marks on the device's clock, this is part of the step's time; if kernels were traced, it precedes that time. Empty
/// if it is not known: no timeline, an older file, launches that were recorded, or a device that is the host.
std::vector<double> launchWaitsNs(const VariantRecord& variant);

/// One per step: did the device wait longer for its launch than it worked? Empty where launchWaitsNs() is.
std::vector<bool> waitedForLaunch(const VariantRecord& variant);

struct LaunchWaits {
  int numWaiting = 0;  // steps with waitedForLaunch()
  int numSteps = 0;
  double waitedNs = 0.0;
  double totalNs = 0.0;  // of the round
};

/// Nothing where launchWaitsNs() is empty.
std::optional<LaunchWaits> launchWaits(const VariantRecord& variant);

/// "unfused: 12 of 14 steps waited for the host to launch them longer than they ran, 45.1 us of 81.0 us in all." Empty
/// if it is not known.
std::string launchWaitText(const VariantRecord& variant);

}  // namespace fuseline
