// Names and JSON of a step's efficiency.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/efficiency.h"
#include "core/support/output_schema.h"

#include <fmt/format.h>

namespace fuseline {

std::string Efficiency::boundName() const {
  switch (bound) {
    case Bound::Unknown: return "";
    case Bound::Memory: return "memory";
    case Bound::Compute: return fmt::format("{} compute", arithmeticName(peak));
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
          {"timesFromRoofline", orNull(efficiency.timesFromRoofline())},
          {"bound", efficiency.boundName()}};
}

Json efficiencySchema() {
  return schema::orNull(schema::object(
      {{"flopsPerByte", schema::orNull(schema::number("FLOPs / minimum traffic; null: no FLOPs."))},
       {"gbps", schema::number("Minimum traffic / time, in 1e9 bytes per second.")},
       {"gflops", schema::number("FLOPs of the math / time, in 1e9 per second.")},
       {"leastNs",
        schema::orNull(schema::number("Time at the roofline limit, step by step; null: peaks were not measured."))},
       {"timesFromRoofline", schema::orNull(schema::number("Median time / roofline limit."))},
       {"bound", schema::text("memory, f32, bf16 or fp8 compute, host launch, several; empty: unknown.")}}));
}

}  // namespace fuseline
