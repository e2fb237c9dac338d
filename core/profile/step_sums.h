// Sums over the steps that a fused step stands for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fuseline {

using Steps = std::vector<const StepRecord*>;

/// The sum of several steps, round by round: the median of sums is not the sum of medians.
std::vector<double> sumPerRound(const Steps& steps);

/// Finds the unfused steps that others stand for. A run may have thousands of steps, and each is asked for.
class StepParts {
 public:
  /// unfused: must outlive it, and what it returns.
  explicit StepParts(const VariantRecord& unfused);

  /// Those whose ops run in this one, in their order.
  Steps of(const StepRecord& whole) const;

 private:
  using Places = std::unordered_map<std::string_view, std::vector<std::size_t>>;

  const std::vector<StepRecord>* m_steps;
  Places m_byName, m_byOp;
};

/// The same, asked once.
Steps partsOf(const StepRecord& whole, const VariantRecord& unfused);

}  // namespace fuseline
