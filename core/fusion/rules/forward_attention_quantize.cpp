// The ops that make queries, keys and values quantize them for the FP8 attention that reads them.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_attention_quantize() {
  return {
      .name = "ForwardAttentionQuantize",
      .pass = FusionPass::ForwardQuantization,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "Saves a write and a read of queries, keys and values: the steps that produce them write them quantized for "
          "FP8 "
          "attention. TransformerEngine quantizes them in a separate kernel. Results are bitwise "
          "identical.",
      .chain = {makingHeads("producer"), quantizedAttention("attention")},
      .conditions = {scalesNeedOnlyRows("attention", TensorType::Input)},
      .becomes = "quantize",
  };
}

}  // namespace fuseline::rules
