// Names and JSON of a step's efficiency.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/efficiency.h"

#include <fmt/format.h>

namespace fuseline {

std::string Efficiency::boundName() const {
  switch (bound) {
    case Bound::Unknown: return "";
    case Bound::Memory: return "memory";
    case Bound::Compute: return fmt::format("{} compute", arithmeticName(roof));
    case Bound::Launch: return "host launch";
    case Bound::Several: return "several";
  }
  return "";
}

Json toJson(const Efficiency& efficiency) {
  const auto orNull = [](double value) { return value > 0.0 ? Json(value) : Json(); };
  if (efficiency.timeNs <= 0.0) return nullptr;
  return {{"flopsPerByte", orNull(efficiency.intensity())},
          {"gbps", efficiency.gbps()},
          {"gflops", efficiency.gflops()},
          {"leastNs", orNull(efficiency.leastNs)},
          {"timesFromRoof", orNull(efficiency.timesFromRoof())},
          {"bound", efficiency.boundName()}};
}

}  // namespace fuseline
