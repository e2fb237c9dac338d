// RMSNorm of each head and its rotary embedding in one pass.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/norm_rotary.h"

namespace fuseline::rules {

FusionRule forward_rmsnorm_rotary() {
  FusionRule rule = normRotary(FusionPass::Forward);
  rule.name = "ForwardRMSNormRotary";
  return rule;
}

}  // namespace fuseline::rules
