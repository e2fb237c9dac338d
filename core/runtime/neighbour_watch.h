// NeighborWatch: how much of the machine's CPUs other programs took while something was measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fuseline {

/// CPU time since the system began, in seconds.
struct CpuTimes {
  double busy = 0.0;  // of all programs
  double idle = 0.0;
};

/// Parses the first line of Linux' /proc/stat (proc(5)); nothing for another text. ticks: per second.
std::optional<CpuTimes> cpuTimesIn(std::string_view text, double ticks);

/// Share of the machine's CPU time that other programs used, from 0 to 1, between two moments in which this program
/// itself used ownSeconds. 0 if it is below the resolution of the system's counters.
double neighboursShare(const CpuTimes& before, const CpuTimes& after, double ownSeconds);

/// Watches from its construction on.
class NeighbourWatch {
 public:
  NeighbourWatch();
  /// "48 % of the CPUs", for a record's environment; empty if it is less than a twentieth, or not known.
  std::string text() const;

 private:
  std::optional<CpuTimes> m_before;
  double m_ownBefore = 0.0;
};

}  // namespace fuseline
