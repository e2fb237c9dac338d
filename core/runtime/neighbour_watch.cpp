// Reads /proc/stat and the times of this process.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/neighbour_watch.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <sstream>

#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kLeastShare = 0.05;
constexpr double kLeastSeconds = 0.05;  // the system counts in hundredths, and not for all CPUs at once

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double ownSeconds() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? seconds(usage.ru_utime) + seconds(usage.ru_stime) : 0.0;
}

std::optional<CpuTimes> cpuTimesNow() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  return cpuTimesIn(line, static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace

std::optional<CpuTimes> cpuTimesIn(std::string_view text, double ticks) {
  std::istringstream line{std::string(text.substr(0, text.find('\n')))};
  std::string name;
  std::array<double, 8> spent = {};  // user, nice, system, idle, iowait, irq, softirq, steal
  line >> name;
  for (double& each : spent) line >> each;
  if (!line || name != "cpu" || ticks <= 0.0) return std::nullopt;
  const double idle = spent[3] + spent[4];
  const double all = std::accumulate(spent.begin(), spent.end(), 0.0);
  return CpuTimes{.busy = (all - idle) / ticks, .idle = idle / ticks};
}

double neighboursShare(const CpuTimes& before, const CpuTimes& after, double ownSeconds) {
  const double busy = after.busy - before.busy;
  const double all = busy + after.idle - before.idle;
  const double others = busy - ownSeconds;
  return others < kLeastSeconds || all <= 0.0 ? 0.0 : std::min(1.0, others / all);
}

NeighbourWatch::NeighbourWatch() : m_before(cpuTimesNow()), m_ownBefore(ownSeconds()) {}

std::string NeighbourWatch::text() const {
  const std::optional<CpuTimes> now = cpuTimesNow();
  if (!m_before || !now) return {};
  const double share = neighboursShare(*m_before, *now, ownSeconds() - m_ownBefore);
  return share < kLeastShare ? std::string() : fmt::format("{:.0f} % of the CPUs", 100.0 * share);
}

}  // namespace fuseline
