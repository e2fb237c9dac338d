// Gradients of a rotary embedding and of the RMSNorm of each head in one pass.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/norm_rotary.h"

namespace fuseline::rules {

FusionRule backward_rmsnorm_rotary() {
  FusionRule rule = normRotary(FusionPass::Backward);
  rule.name = "BackwardRMSNormRotary";
  return rule;
}

}  // namespace fuseline::rules
