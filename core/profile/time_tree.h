// TimeTree: the time of a plan, divided from the whole down to kernels, with equal work merged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fuseline {

enum class TimeLevel { Plan, Pass, Group, Step, Part, Activity };

/// Its time is at least the sum of its children; the rest is its own. Medians of a step's kernels may add up to
/// slightly more than the median of the step.
struct TimeNode {
  TimeLevel level = TimeLevel::Plan;
  /// A step's name omits its groups: "ForwardLinearBias(fc1.linear, fc1.bias)" in "layer1".
  std::string name;
  double ns = 0.0;  // of a step its median over the rounds; of a node with steps the sum of theirs
  int count = 1;    // number of instances that share this node
  /// A basic op's estimated part of a fused step: its share in the unfused plan. It is not measured.
  bool isEstimate = false;
  std::vector<std::size_t> steps;  // indices in VariantRecord::steps: those in the node, or the one that contains it
  std::vector<TimeNode> children;  // in the order in which they first ran
};

enum class Instances { Apart, Together };

/// Passes, in them groups by the dots in names ("layer1.mlp.fc1" is in "layer1" and there in "mlp"), then steps. In a
/// step that was traced there are its kernels, in other fused steps estimates of their basic ops. Together: instances
/// of a block are one group, named after the block. Empty (no children) where steps were not timed.
TimeNode timeTree(const RunRecord& record, const VariantRecord& variant, Instances instances = Instances::Apart);

}  // namespace fuseline
