// Roofline: the least time of a step at a device's peaks, and how far from it the step is.
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

/// Work of a step, and the device arithmetic that computes it.
struct StepWork {
  Arithmetic arithmetic = Arithmetic::F32;
  double flops = 0.0;
  double bytes = 0.0;
};

/// GEMMs are in the dtype that the op reads (both 16-bit ones count as bf16), or in FP8 if a recipe quantizes the op;
/// other operations are in float32. None: a copy to or from the host's memory, communication.
Arithmetic arithmeticOf(const Graph& graph, const Step& step);

/// Work of every step that uses the device.
std::vector<StepWork> workOf(const Graph& graph, const Plan& plan);
StepWork workOf(const StepRecord& step);
/// Work of every step except views.
std::vector<StepWork> workOf(const VariantRecord& variant);

/// Nanoseconds, summed over the steps, each at the nearer of its two peaks: its bytes at the bandwidth of a copy, its
/// operations at the peak of its arithmetic. A model: launches take no time in it. 0 without peaks.
double leastTimeNs(const std::vector<StepWork>& work, const DevicePeaks& peaks);

/// The peaks in a device's data sheet, not measured. Nullopt: not known here.
std::optional<DevicePeaks> publishedPeaks(std::string_view device);

/// Distance of a variant's steps from the peaks that were measured with it. The variant must outlive it.
class Roofline {
 public:
  Roofline(const RunRecord& record, const VariantRecord& variant);

  /// steps: of the variant; views among them are ignored. A step is launch-bound if the device waited longer for its
  /// launch than it worked (launch_wait.h). If that is not known: if the host takes longer to launch the whole plan
  /// than the device takes for its steps, and the step is shorter than the host's mean time for a launch.
  Efficiency of(const Steps& steps) const;

 private:
  Efficiency of(const StepRecord& step) const;
  bool waitsForLaunch(const StepRecord& step, double timeNs) const;

  DevicePeaks m_peaks;  // all 0: none were measured
  const VariantRecord& m_variant;
  std::vector<bool> m_waited;  // by step; empty: not known
  double m_launchNs = 0.0;     // the host's mean time for a launch where the device waits for it
};

}  // namespace fuseline
