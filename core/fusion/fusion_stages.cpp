// Takes the fusions of later passes apart again.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fusion_stages.h"

#include <algorithm>

namespace fuseline {

namespace {

/// Entries do not overlap, so that their last ops give the order.
std::vector<FusedOperation> listAfter(const std::vector<FusedOperation>& list, FusionStage stage) {
  std::vector<FusedOperation> earlier;
  for (const FusedOperation& entry : list) {
    if (entry.isFused() && stageOf(*entry.rule) > stage)
      for (const NodeId node : entry.nodes) earlier.push_back({.nodes = {node}, .ranks = entry.ranks});
    else
      earlier.push_back(entry);
  }
  std::ranges::sort(earlier, {}, [](const FusedOperation& entry) { return entry.nodes.back(); });
  return earlier;
}

}  // namespace

FusionStage stageOf(const FusionRule& rule) {
  switch (rule.pass) {
    case FusionPass::Joint: return FusionStage::Joint;
    case FusionPass::Forward: return FusionStage::Forward;
    case FusionPass::Backward: return FusionStage::Backward;
    default: return FusionStage::FusedOperands;
  }
}

FusionReport reportAfter(const FusionReport& report, FusionStage stage) {
  if (stage == FusionStage::FusedOperands) return report;
  FusionReport earlier = report;
  earlier.forward = listAfter(report.forward, stage);
  earlier.backward = listAfter(report.backward, stage);
  earlier.fusedOperands.clear();
  return earlier;
}

std::vector<const Attempt*> fusedIn(const FusionReport& report, FusionStage stage) {
  std::vector<const Attempt*> fused;
  for (const Attempt& attempt : report.attempts)
    if (attempt.outcome == Outcome::Fused && stageOf(*attempt.rule) == stage) fused.push_back(&attempt);
  return fused;
}

}  // namespace fuseline
