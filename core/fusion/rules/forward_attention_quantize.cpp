// The op that makes queries, keys and values quantizes them for the FP8 attention that reads them.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_attention_quantize() {
  return {
      .name = "ForwardAttentionQuantize",
      .pass = FusionPass::ForwardQuantization,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "Saves a write and a read of queries, keys and values: the step that splits and rotates them writes them "
          "quantized for FP8 attention. TransformerEngine quantizes them in a separate kernel. Results are bitwise "
          "identical.",
      .chain = {splittingHeads("producer"), quantizedAttention("attention")},
      .conditions = {scalesNeedOnlyRows("attention", TensorType::Input)},
      .becomes = "quantize",
  };
}

}  // namespace fuseline::rules
