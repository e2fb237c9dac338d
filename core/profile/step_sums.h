// Sums over the unfused steps that a fused step replaces.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <cstddef>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace fuseline {

using Steps = std::vector<const StepRecord*>;

/// The sum of several steps, round by round: the median of sums is not the sum of medians.
std::vector<double> sumPerRound(const Steps& steps);

/// Finds the unfused steps that another step replaces. Indexed, because a run may have thousands of steps and each is
/// looked up.
class StepParts {
 public:
  /// Both must outlive this object and its results.
  StepParts(const VariantRecord& unfused, const VariantRecord& fused);

  /// The unfused steps with ops that run in `whole`, in their order.
  Steps of(const StepRecord& whole) const;

 private:
  using Places = std::unordered_map<std::string_view, std::vector<std::size_t>>;
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;  // name, kernel, phase

  static Key keyOf(const StepRecord& step) { return {step.name, step.kernel, step.phase}; }
  bool isPartOf(const StepRecord& part, const StepRecord& whole) const;

  const std::vector<StepRecord>* m_steps;
  Places m_byName, m_byOp;
  std::set<Key> m_kept;  // of the steps that both plans run by themselves
};

/// The same for a single lookup.
Steps partsOf(const StepRecord& whole, const VariantRecord& unfused, const VariantRecord& fused);

}  // namespace fuseline
