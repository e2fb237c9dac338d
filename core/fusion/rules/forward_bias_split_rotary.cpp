// A bias, a Split and the rotary embeddings of its parts in one pass.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/split_rotary.h"

namespace fuseline::rules {

FusionRule forward_bias_split_rotary() {
  FusionRule rule = splitRotary(FusionPass::Forward, true);
  rule.name = "ForwardBiasSplitRotary";
  return rule;
}

}  // namespace fuseline::rules
