// The backwards of a run of elementwise ops in one pass over memory.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/chains.h"

namespace fuseline::rules {

FusionRule backward_elementwise_chain() {
  return {
      .name = "BackwardElementwiseChain",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "A sequence of elementwise ops keeps its gradients in registers; bias gradients are summed in the same pass.",
      .chain = elementwiseChain(),
      .becomes = "elementwise",
  };
}

}  // namespace fuseline::rules
