// Finds the unfused steps of a fused one by their ops.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/step_sums.h"

#include <algorithm>
#include <set>

namespace fuseline {

std::vector<double> sumPerRound(const Steps& steps) {
  std::vector<double> sums;
  for (const StepRecord* step : steps) {
    if (sums.empty()) sums.resize(step->samplesNs.size(), 0.0);
    sums.resize(std::min(sums.size(), step->samplesNs.size()));
    for (std::size_t round = 0; round < sums.size(); ++round) sums[round] += step->samplesNs[round];
  }
  return sums;
}

StepParts::StepParts(const VariantRecord& unfused, const VariantRecord& fused) : m_steps(&unfused.steps) {
  std::set<Key> keys;
  for (std::size_t i = 0; i < m_steps->size(); ++i) {
    const StepRecord& step = (*m_steps)[i];
    keys.insert(keyOf(step));
    m_byName[step.name].push_back(i);
    if (!step.ops.empty()) m_byOp[step.ops.front()].push_back(i);
  }
  for (const StepRecord& step : fused.steps)
    if (step.rule.empty() && keys.contains(keyOf(step))) m_kept.insert(keyOf(step));
}

/// A step that is not fused is the same in both plans; a fused one has parts, but not what the fused plan runs by
/// itself. One op may have several steps, such as the gather and the scatter of a layer, which differ in their kernel.
bool StepParts::isPartOf(const StepRecord& part, const StepRecord& whole) const {
  if (part.phase != whole.phase) return false;
  if (std::ranges::count(whole.absorbs, part.name) > 0) return true;
  if (whole.rule.empty() || part.ops.empty())
    return m_kept.contains(keyOf(whole)) ? keyOf(part) == keyOf(whole) : part.name == whole.name;
  if (m_kept.contains(keyOf(part))) return false;
  return std::ranges::all_of(part.ops, [&](const std::string& op) { return std::ranges::count(whole.ops, op) > 0; });
}

Steps StepParts::of(const StepRecord& whole) const {
  std::set<std::size_t> candidates;
  const auto consider = [&](const Places& places, std::string_view key) {
    if (const auto found = places.find(key); found != places.end())
      candidates.insert(found->second.begin(), found->second.end());
  };
  consider(m_byName, whole.name);
  for (const std::string& name : whole.absorbs) consider(m_byName, name);
  for (const std::string& op : whole.ops) consider(m_byOp, op);
  Steps parts;
  for (const std::size_t place : candidates)
    if (isPartOf((*m_steps)[place], whole)) parts.push_back(&(*m_steps)[place]);
  return parts;
}

Steps partsOf(const StepRecord& whole, const VariantRecord& unfused, const VariantRecord& fused) {
  return StepParts(unfused, fused).of(whole);
}

}  // namespace fuseline
