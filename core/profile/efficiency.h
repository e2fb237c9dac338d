// Efficiency: what a step made of its device, and what keeps it from being faster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/device_roofs.h"

#include <string>

namespace fuseline {

/// What keeps work from being faster. Several: not all of it is kept by the same.
enum class Bound { Unknown, Memory, Compute, Launch, Several };

/// What a step, or several that are set beside one, made of the device. Rates are of the least traffic and of the
/// operations by definition, over the median time.
struct Efficiency {
  double timeNs = 0.0;
  double flops = 0.0;
  double bytes = 0.0;
  double leastNs = 0.0;  // by the roofs; 0: not known
  Bound bound = Bound::Unknown;
  Arithmetic roof = Arithmetic::None;  // whose peak it is, where the bound is Compute

  /// FLOP per byte; 0: nothing is computed, or nothing moves.
  double intensity() const { return bytes > 0.0 ? flops / bytes : 0.0; }
  double gbps() const { return timeNs > 0.0 ? bytes / timeNs : 0.0; }
  double gflops() const { return timeNs > 0.0 ? flops / timeNs : 0.0; }
  /// The time over the least time; below 1 where a cache is faster than the memory that was measured. 0: not known.
  double timesFromRoof() const { return leastNs > 0.0 ? timeNs / leastNs : 0.0; }
  /// "memory", "bf16 compute", "host launch", "several"; empty: not known.
  std::string boundName() const;
};

/// The rates, the distance and the bound; null for what has no time.
Json toJson(const Efficiency& efficiency);
Json efficiencySchema();

}  // namespace fuseline
