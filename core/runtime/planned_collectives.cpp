// Counts the bytes of the operands of communication steps.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/planned_collectives.h"

#include "core/collective/communicator.h"
#include "core/runtime/launcher.h"
#include "core/runtime/rank_prediction.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kEstimatedLink = "nvlink4";

/// Userbuffers have no all-reduce.
bool canBeHidden(const PlannedCollective& each) { return each.collective != "all-reduce"; }

std::string rangeText(const TimeRange& range) {
  return fmt::format("{:.0f} to {:.0f} us", std::floor(range.lowNs / 1e3), std::ceil(range.highNs / 1e3));
}

}  // namespace

std::int64_t wireBytesOf(const Plan& plan, const Step& step, int ranks) {
  std::int64_t bytes = 0;
  for (const CollectivePart& part : collectiveParts(plan, step, {}))
    bytes += wireBytes(step.collective->kind, wholeBytes(step.collective->kind, part, ranks), ranks);
  return bytes;
}

std::vector<PlannedCollective> plannedCollectives(const Plan& plan, const Graph& graph, int ranks) {
  std::vector<PlannedCollective> collectives;
  for (const Step& step : plan.steps)
    if (step.collective && step.collective->half != CollectiveWork::Half::Await)
      collectives.push_back({.step = step.name,
                             .op = step.nodes.size() == 1 ? graph.node(step.nodes.front()).owner : std::string(),
                             .phase = std::string(phaseName(step.phase)),
                             .collective = std::string(collectiveName(step.collective->kind)),
                             .wireBytes = wireBytesOf(plan, step, ranks)});
  return collectives;
}

std::int64_t sentBytes(const std::vector<PlannedCollective>& collectives) {
  std::int64_t bytes = 0;
  for (const PlannedCollective& each : collectives) bytes += each.wireBytes;
  return bytes;
}

std::string toString(const std::vector<PlannedCollective>& collectives, int ranks) {
  if (collectives.empty()) return {};
  std::size_t width = 0;
  for (const PlannedCollective& each : collectives) width = std::max(width, each.step.size());
  std::string text = fmt::format("Communication of each of {} ranks (predicted bytes on the wire: {} sent)\n", ranks,
                                 formatBytes(sentBytes(collectives)));
  for (const PlannedCollective& each : collectives)
    text += fmt::format("  {:8}  {:{}}  {:14}  {}\n", each.phase, each.step, width, each.collective,
                        formatBytes(each.wireBytes));
  return text + "  " + estimateText(collectives, ranks) + "\n";
}

std::string estimateText(const std::vector<PlannedCollective>& collectives, int ranks) {
  if (collectives.empty()) return {};
  const RankLink link = *parseLink(kEstimatedLink);
  TimeRange all;
  TimeRange hidden;
  for (const PlannedCollective& each : collectives) {
    const TimeRange time = collectiveTime(link, each.collective, static_cast<double>(each.wireBytes), ranks);
    all += time;
    if (canBeHidden(each)) hidden += time;
  }
  std::string text = fmt::format("Estimate for {} ({}): {} of communication.", link.name, link.source, rangeText(all));
  if (hidden.highNs > 0.0)
    text += fmt::format(" Userbuffers would hide at most {} of it behind GEMMs.", rangeText(hidden));
  return text;
}

Json toJson(const std::vector<PlannedCollective>& collectives) {
  Json list = Json::array();
  for (const PlannedCollective& each : collectives)
    list.push_back({{"step", each.step},
                    {"op", each.op},
                    {"phase", each.phase},
                    {"collective", each.collective},
                    {"wireBytes", each.wireBytes}});
  return list;
}

Json plannedCollectivesSchema() {
  return schema::list(
      schema::object({{"step", schema::text()},
                      {"op", schema::text("Op of the document; empty: the step belongs to the pipeline.")},
                      {"phase", schema::choice({"forward", "backward"})},
                      {"collective", schema::choice({"all-gather", "reduce-scatter", "all-reduce", "broadcast"})},
                      {"wireBytes", schema::integer("Sent by each rank, with the ring algorithm.")}}),
      "Communication steps of one rank of --ranks N, in the order of the plan; empty: one rank.");
}

}  // namespace fuseline
