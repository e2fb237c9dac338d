// A run of elementwise ops in one pass over memory.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/chains.h"

namespace fuseline::rules {

FusionRule forward_elementwise_chain() {
  return {
      .name = "ForwardElementwiseChain",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "A sequence of elementwise ops keeps its values in registers: one pass over memory, one rounding at the end.",
      .chain = elementwiseChain(),
      .becomes = "elementwise",
      .writesBranches = true,
  };
}

}  // namespace fuseline::rules
