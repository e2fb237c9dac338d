// Gradients of rotary embeddings into one gradient of the packed tensor.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/split_rotary.h"

namespace fuseline::rules {

FusionRule backward_split_rotary() {
  FusionRule rule = splitRotary(FusionPass::Backward, false);
  rule.name = "BackwardSplitRotary";
  return rule;
}

}  // namespace fuseline::rules
