// Gradients of rotary embeddings into one gradient, and the bias gradient with it.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/split_rotary.h"

namespace fuseline::rules {

FusionRule backward_bias_split_rotary() {
  FusionRule rule = splitRotary(FusionPass::Backward, true);
  rule.name = "BackwardBiasSplitRotary";
  return rule;
}

}  // namespace fuseline::rules
