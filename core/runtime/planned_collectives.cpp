// Counts the bytes of the operands of communication steps.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/planned_collectives.h"

#include "core/collective/communicator.h"
#include "core/profile/roofline.h"
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

constexpr const char* kEstimatedDevice = "NVIDIA H100 80GB HBM3";

StepWork workOf(const Graph& graph, const Step& step) {
  return {.arithmetic = arithmeticOf(graph, step),
          .flops = static_cast<double>(step.flops),
          .bytes = static_cast<double>(step.bytesRead + step.bytesWritten)};
}

std::vector<StepTime> estimatedTimes(const Plan& plan, const Graph& graph, int ranks) {
  const RankLink link = *parseLink(kEstimatedLink);
  const DevicePeaks peaks = *publishedPeaks(kEstimatedDevice);
  std::vector<StepTime> times;
  for (const Step& step : plan.steps) {
    if (!step.collective)
      times.push_back({.computeNs = step.isWork() ? leastTimeNs({workOf(graph, step)}, peaks) : 0.0});
    else if (step.collective->isWait())
      times.emplace_back();
    else
      times.push_back(timeOf(link, collectiveName(step.collective->kind), wireBytesOf(plan, step, ranks), ranks));
  }
  return times;
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
  if (ranks == 1) return collectives;
  const std::vector<OverlapEstimate> estimates =
      estimateOverlap(plan, graph, ranks, estimatedTimes(plan, graph, ranks));
  for (std::size_t index = 0; index < plan.steps.size(); ++index) {
    const Step& step = plan.steps[index];
    if (!step.collective || step.collective->isWait()) continue;
    collectives.push_back({.step = step.name,
                           .op = step.nodes.size() == 1 ? graph.node(step.nodes.front()).owner : std::string(),
                           .phase = std::string(phaseName(step.phase)),
                           .collective = std::string(collectiveName(step.collective->kind)),
                           .wireBytes = wireBytesOf(plan, step, ranks),
                           .estimate = estimates[index]});
  }
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
  return text + "  " + estimateText(collectives) + "\n";
}

std::string estimateText(const std::vector<PlannedCollective>& collectives) {
  if (collectives.empty()) return {};
  const RankLink link = *parseLink(kEstimatedLink);
  OverlapEstimate all;
  for (const PlannedCollective& each : collectives) all += each.estimate;
  std::string text = fmt::format("Estimate for {} ({}) and the peaks of an H100: {} of communication", link.name,
                                 link.source, toString(all.communication));
  if (all.hidden.highNs > 0.0) text += fmt::format(", of which the plan hides {}", toString(all.hidden));
  const std::string userbuffers = userbuffersText(all);
  return text + (userbuffers.empty() ? "." : ". " + userbuffers);
}

std::string userbuffersText(const Analysis& analysis, const Attempt& attempt) {
  if (attempt.rule->askedBy != "userbuffers_comm_name" || !analysis.fusedPlan) return {};
  const std::string& op = analysis.graph().node(attempt.nodes.front()).owner;
  const std::string_view phase =
      phaseName(attempt.rule->pass == FusionPass::Backward ? Phase::Backward : Phase::Forward);
  OverlapEstimate sum;
  for (const PlannedCollective& each : plannedCollectives(*analysis.fusedPlan, analysis.graph(), analysis.ranks))
    if (each.op == op && each.phase == phase) sum += each.estimate;
  return userbuffersText(sum);
}

Json toJson(const std::vector<PlannedCollective>& collectives) {
  Json list = Json::array();
  for (const PlannedCollective& each : collectives)
    list.push_back({{"step", each.step},
                    {"op", each.op},
                    {"phase", each.phase},
                    {"collective", each.collective},
                    {"wireBytes", each.wireBytes},
                    {"estimate", toJson(each.estimate)}});
  return list;
}

Json plannedCollectivesSchema() {
  return schema::list(
      schema::object({{"step", schema::text()},
                      {"op", schema::text("Op of the document; empty: the step belongs to the pipeline.")},
                      {"phase", schema::choice({"forward", "backward", "optimizer"})},
                      {"collective", schema::choice({"all-gather", "reduce-scatter", "all-reduce", "broadcast"})},
                      {"wireBytes", schema::integer("Sent by each rank, with the ring algorithm.")},
                      {"estimate", schema::object(overlapEstimateFields())}}),
      "Communication steps of one rank of --ranks N, in the order of the plan; empty: one rank.");
}

}  // namespace fuseline
