// A linear's communication during its gradients' GEMMs (TransformerEngine userbuffers_backward_linear.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/userbuffers.h"

namespace fuseline::rules {

FusionRule userbuffers_backward_linear() {
  return userbuffersLinear({
      .name = "UserbuffersBackwardLinear",
      .pass = FusionPass::Backward,
      .summary = "Communication overlaps the gradient GEMMs: a column-parallel linear gathers x during dgrad and "
                 "scatters dx during wgrad; a row-parallel linear, and one before a ReduceScatter, gather dy during "
                 "dgrad. Unlike TransformerEngine, which applies it under a backward override too, this rule has the "
                 "same conditions as the forward rule.",
  });
}

}  // namespace fuseline::rules
