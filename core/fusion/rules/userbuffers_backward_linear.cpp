// A linear's communication during its gradients' GEMMs (TransformerEngine userbuffers_backward_linear.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/userbuffers.h"

namespace fuseline::rules {

FusionRule userbuffers_backward_linear() {
  return userbuffersLinear({
      .name = "UserbuffersBackwardLinear",
      .pass = FusionPass::Backward,
      .summary =
          "The ranks communicate during the gradients' GEMMs: a column-parallel linear gathers x during dgrad and "
          "scatters dx during wgrad, a row-parallel one and one before a ReduceScatter gather dy during dgrad. Unlike "
          "TransformerEngine, which applies it under a backward override as well, this rule asks what the forward "
          "one asks.",
  });
}

}  // namespace fuseline::rules
