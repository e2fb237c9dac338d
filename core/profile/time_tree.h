// TimeTree: where the time of a plan goes, from the whole down to kernels, with equal work as one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fuseline {

enum class TimeLevel { Plan, Pass, Group, Step, Part, Activity };

/// Takes at least the time of what it holds together; the rest is its own. Medians of a step's kernels may come to a
/// little more than the median of the step.
struct TimeNode {
  TimeLevel level = TimeLevel::Plan;
  /// A step's is told without the groups it stands in: "ForwardLinearBias(fc1.linear, fc1.bias)" in "layer1".
  std::string name;
  double ns = 0.0;  // of a step its median over the rounds; of what holds steps the sum of theirs
  int count = 1;    // how many are told as this one
  /// What a basic op may take of a fused step: its share is that of the unfused plan. Nobody has measured it.
  bool isEstimate = false;
  std::vector<std::size_t> steps;  // in VariantRecord::steps: those in it, or the one it is in
  std::vector<TimeNode> children;  // in the order in which they first ran
};

enum class Instances { Apart, Together };

/// Passes, in them groups by the dots in names ("layer1.mlp.fc1" is in "layer1" and there in "mlp"), then steps. In a
/// step that was traced there are its kernels, in other fused steps estimates of their basic ops. Together: instances
/// of a block are one group, named after the block. Empty (no children) where steps were not timed.
TimeNode timeTree(const RunRecord& record, const VariantRecord& variant, Instances instances = Instances::Apart);

}  // namespace fuseline
