// Finds the unfused steps of a fused one by their ops.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/step_sums.h"

#include <algorithm>

namespace fuseline {

namespace {

/// A step that is not fused is the same in both plans; a fused one has parts. One op may have several steps.
bool isPartOf(const StepRecord& part, const StepRecord& whole) {
  if (part.phase != whole.phase) return false;
  if (std::ranges::count(whole.absorbs, part.name) > 0) return true;
  if (whole.rule.empty() || part.ops.empty()) return part.name == whole.name;
  return std::ranges::all_of(part.ops, [&](const std::string& op) { return std::ranges::count(whole.ops, op) > 0; });
}

}  // namespace

std::vector<double> sumPerRound(const Steps& steps) {
  std::vector<double> sums;
  for (const StepRecord* step : steps) {
    if (sums.empty()) sums.resize(step->samplesNs.size(), 0.0);
    sums.resize(std::min(sums.size(), step->samplesNs.size()));
    for (std::size_t round = 0; round < sums.size(); ++round) sums[round] += step->samplesNs[round];
  }
  return sums;
}

Steps partsOf(const StepRecord& whole, const VariantRecord& unfused) {
  Steps parts;
  for (const StepRecord& step : unfused.steps)
    if (isPartOf(step, whole)) parts.push_back(&step);
  return parts;
}

}  // namespace fuseline
