// Roofline: the least time that a device's roofs allow a step, and how far from it the step is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/profile/efficiency.h"
#include "core/profile/run_record.h"
#include "core/profile/step_sums.h"

#include <optional>
#include <string_view>
#include <vector>

namespace fuseline {

/// What a step does, and by which of a device's arithmetics.
struct StepWork {
  Arithmetic arithmetic = Arithmetic::F32;
  double flops = 0.0;
  double bytes = 0.0;
};

/// Products are in the dtype that the op reads, those of both 16-bit ones count as bf16, or in FP8 where a recipe
/// quantizes the op; all else is in float32. None: a copy to or from the host's memory, communication.
Arithmetic arithmeticOf(const Graph& graph, const Step& step);

/// Of every step that gives the device something to do.
std::vector<StepWork> workOf(const Graph& graph, const Plan& plan);
StepWork workOf(const StepRecord& step);
/// Of every step but views.
std::vector<StepWork> workOf(const VariantRecord& variant);

/// Nanoseconds, step by step at the nearer of its two roofs: its bytes at the bandwidth of a copy, its operations at
/// the peak of its arithmetic. A model: launches take no time in it. 0 without roofs.
double leastTimeNs(const std::vector<StepWork>& work, const DeviceRoofs& roofs);

/// What a device is sold with: its data sheet's, not measured. Nullopt: not known here.
std::optional<DeviceRoofs> publishedRoofs(std::string_view device);

/// How far the steps of a variant, which must outlive it, are from the roofs that were measured with it.
class Roofline {
 public:
  Roofline(const RunRecord& record, const VariantRecord& variant);

  /// Of steps of the variant; views among them are left out. A step waits for the host's launch where the device waited
  /// longer for it than it worked (launch_wait.h). Where that is not known: where the host takes longer to launch the
  /// whole plan than the device for its steps, and where the step is shorter than the host's mean time for a launch.
  Efficiency of(const Steps& steps) const;

 private:
  Efficiency of(const StepRecord& step) const;
  bool waitsForLaunch(const StepRecord& step, double timeNs) const;

  DeviceRoofs m_roofs;  // all 0: none were measured
  const VariantRecord& m_variant;
  std::vector<bool> m_waited;  // by step; empty: not known
  double m_launchNs = 0.0;     // the host's mean time for a launch where the device waits for it
};

}  // namespace fuseline
