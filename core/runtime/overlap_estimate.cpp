// Follows a plan from each collective to its wait, and to the GEMM beside it.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/overlap_estimate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// TransformerEngine scatters the output of a GEMM in this number of parts (its method "pipeline").
constexpr int kSplits = 4;
/// A backward step computes two GEMMs of the same size, one of which overlaps.
constexpr double kShareOfDgrad = 0.5;

/// Per-tensor scales and MXFP8, as in TransformerEngine.
bool hasUserbuffersRecipe(const Node& linear) {
  const std::optional<QuantizerSpec>& input = linear.quantizers.input.rowwise;
  return !input || input->scaling == Scaling::PerTensor || input->scaling == Scaling::Mx1x32;
}

bool isAt(const StepOperand& operand, OperandKind kind) {
  return operand.key.kind == kind && operand.access != OperandAccess::Read;
}

class OverlapEstimator {
 public:
  OverlapEstimator(const Plan& plan, const Graph& graph, int ranks, std::span<const StepTime> times)
      : m_plan(plan), m_graph(graph), m_ranks(ranks), m_times(times) {}

  OverlapEstimate of(std::size_t index) const {
    const Step& step = m_plan.steps[index];
    const StepTime& time = m_times[index];
    OverlapEstimate made{.communication = time.communication};
    if (step.collective->half == CollectiveWork::Half::Begin) {
      const double besideNs = computeUntilWait(index);
      made.hidden = {std::min(time.communication.lowNs, besideNs), std::min(time.communication.highNs, besideNs)};
      return made;
    }
    if (const std::optional<double> gemmNs = gemmBeside(index); gemmNs && *gemmNs > 0.0)
      made.userbuffers = {hiddenByChunks(step.collective->kind, time.communication.lowNs, time.latencyNs, *gemmNs),
                          hiddenByChunks(step.collective->kind, time.communication.highNs, time.latencyNs, *gemmNs)};
    return made;
  }

 private:
  double computeUntilWait(std::size_t begin) const {
    double sumNs = 0.0;
    for (std::size_t index = begin + 1; !isCollective(index); ++index) sumNs += m_times[index].computeNs;
    return sumNs;
  }

  bool isCollective(std::size_t index) const {
    return m_plan.steps[index].collective && m_plan.steps[index].isLaunched();
  }

  double hiddenByChunks(CollectiveKind kind, double timeNs, double latencyNs, double gemmNs) const {
    if (kind == CollectiveKind::AllGather) return std::min(timeNs, gemmNs * static_cast<double>(m_ranks - 1) / m_ranks);
    const double fixedNs = std::min(latencyNs, timeNs);
    const double partNs = fixedNs + (timeNs - fixedNs) / kSplits;
    const double exposedNs = partNs + (kSplits - 1) * std::max(0.0, partNs - gemmNs / kSplits);
    return std::max(0.0, timeNs - exposedNs);
  }

  /// The time of the GEMM that reads what the collective gathers, or makes what it scatters. Nothing: Userbuffers have
  /// no part in it.
  std::optional<double> gemmBeside(std::size_t index) const {
    const Step& step = m_plan.steps[index];
    const bool isGather = step.collective->kind == CollectiveKind::AllGather;
    if (!isGather && step.collective->kind != CollectiveKind::ReduceScatter) return std::nullopt;
    if (step.nodes.empty() || m_graph.node(step.nodes.front()).operation->name == "AllGather") return std::nullopt;
    const std::ptrdiff_t way = isGather ? 1 : -1;
    const auto end = static_cast<std::ptrdiff_t>(m_plan.steps.size());
    for (auto at = static_cast<std::ptrdiff_t>(index) + way; at >= 0 && at < end; at += way) {
      const auto next = static_cast<std::size_t>(at);
      if (isCollective(next) || m_plan.steps[next].phase != step.phase) return std::nullopt;
      if (const Node* const linear = linearIn(m_plan.steps[next]))
        return hasUserbuffersRecipe(*linear) ? std::optional(gemmNs(next)) : std::nullopt;
    }
    return std::nullopt;
  }

  const Node* linearIn(const Step& step) const {
    for (const NodeId id : step.nodes)
      if (const Node& node = m_graph.node(id); !step.isView && node.operation->name == "BasicLinear") return &node;
    return nullptr;
  }

  double gemmNs(std::size_t index) const {
    const Step& step = m_plan.steps[index];
    const auto writes = [&](OperandKind kind) {
      return std::ranges::any_of(step.operands, [&](const StepOperand& operand) { return isAt(operand, kind); });
    };
    const bool hasBoth = writes(OperandKind::GradInput) && writes(OperandKind::GradParameter);
    return m_times[index].computeNs * (hasBoth ? kShareOfDgrad : 1.0);
  }

  const Plan& m_plan;
  const Graph& m_graph;
  int m_ranks;
  std::span<const StepTime> m_times;
};

}  // namespace

TimeRange& TimeRange::operator+=(const TimeRange& other) {
  lowNs += other.lowNs;
  highNs += other.highNs;
  return *this;
}

std::string toString(const TimeRange& range) {
  if (range.lowNs == range.highNs) return fmt::format("{:.0f} us", range.lowNs / 1e3);
  return fmt::format("{:.0f} to {:.0f} us", std::floor(range.lowNs / 1e3), std::ceil(range.highNs / 1e3));
}

OverlapEstimate& OverlapEstimate::operator+=(const OverlapEstimate& other) {
  communication += other.communication;
  hidden += other.hidden;
  userbuffers += other.userbuffers;
  return *this;
}

std::vector<OverlapEstimate> estimateOverlap(const Plan& plan, const Graph& graph, int ranks,
                                             std::span<const StepTime> times) {
  const OverlapEstimator estimator(plan, graph, ranks, times);
  std::vector<OverlapEstimate> estimates(plan.steps.size());
  for (std::size_t index = 0; index < plan.steps.size(); ++index) {
    const Step& step = plan.steps[index];
    if (step.collective && step.isLaunched() && !step.collective->isWait()) estimates[index] = estimator.of(index);
  }
  return estimates;
}

std::string userbuffersText(const OverlapEstimate& estimate) {
  if (estimate.userbuffers.highNs < 500.0) return {};
  return fmt::format("Userbuffers would hide about {} of the exposed {} (estimate).", toString(estimate.userbuffers),
                     toString(estimate.exposed()));
}

Json toJson(const OverlapEstimate& estimate) {
  return {{"communicationLowNs", estimate.communication.lowNs},
          {"communicationHighNs", estimate.communication.highNs},
          {"hiddenLowNs", estimate.hidden.lowNs},
          {"hiddenHighNs", estimate.hidden.highNs},
          {"userbuffersLowNs", estimate.userbuffers.lowNs},
          {"userbuffersHighNs", estimate.userbuffers.highNs}};
}

schema::Fields overlapEstimateFields() {
  return {{"communicationLowNs", schema::number("Estimated by a model of the link.")},
          {"communicationHighNs", schema::number("Estimated by a model of the link.")},
          {"hiddenLowNs", schema::number("Part that overlaps with other steps of the plan.")},
          {"hiddenHighNs", schema::number("Part that overlaps with other steps of the plan.")},
          {"userbuffersLowNs", schema::number("Further part that TransformerEngine's Userbuffers would hide.")},
          {"userbuffersHighNs", schema::number("Further part that TransformerEngine's Userbuffers would hide.")}};
}

}  // namespace fuseline
