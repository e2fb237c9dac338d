// The op that makes queries, keys and values finds the amax by which the FP8 attention that reads them quantizes them.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_attention_amax() {
  return {
      .name = "ForwardAttentionAmax",
      .pass = FusionPass::ForwardQuantization,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "Saves one read of queries, keys and values: the steps that produce them also compute the amax of all three, "
          "with which they are quantized. Results are bitwise identical.",
      .chain = {makingHeads("producer"), quantizedAttention("attention")},
      .conditions = {scalesNeedTheAmax("attention", TensorType::Input)},
      .becomes = "quantize",
      .findsAmaxOnly = true,
  };
}

}  // namespace fuseline::rules
