// Efficiency: a step's rates compared with the device's peaks, and what bounds the step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/device_peaks.h"

#include <string>

namespace fuseline {

/// Bound of the work. Several: different parts have different bounds.
enum class Bound { Unknown, Memory, Compute, Launch, Several };

/// Efficiency of a step, or of several steps that are compared with one. Rates are the least traffic and the operations
/// by definition, divided by the median time.
struct Efficiency {
  double timeNs = 0.0;
  double flops = 0.0;
  double bytes = 0.0;
  double leastNs = 0.0;  // by the peaks; 0: not known
  Bound bound = Bound::Unknown;
  Arithmetic peak = Arithmetic::None;  // its peak limits the step if the bound is Compute

  /// FLOP per byte; 0: nothing is computed, or nothing moves.
  double intensity() const { return bytes > 0.0 ? flops / bytes : 0.0; }
  double gbps() const { return timeNs > 0.0 ? bytes / timeNs : 0.0; }
  double gflops() const { return timeNs > 0.0 ? flops / timeNs : 0.0; }
  /// The time over the least time; below 1 where a cache is faster than the memory that was measured. 0: not known.
  double timesFromRoofline() const { return leastNs > 0.0 ? timeNs / leastNs : 0.0; }
  /// "memory", "bf16 compute", "host launch", "several"; empty: not known.
  std::string boundName() const;
};

/// The rates, the distance and the bound; null for steps without a time.
Json toJson(const Efficiency& efficiency);
Json efficiencySchema();

}  // namespace fuseline
