// The op whose input gradient a linear op reads quantizes it for that op.
// Source: prev_op_grad_output_quantizer in TransformerEngine's fuser.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_quantize() {
  return {
      .name = "BackwardQuantize",
      .pass = FusionPass::BackwardHandOver,
      .origin = RuleOrigin::Te,
      .summary =
          "The kernel that makes the output gradient of a linear op also writes its quantized copies: nobody reads the "
          "gradient again to quantize it, and it is never written itself. The bits are the same.",
      .chain = {quantizing("linear", TensorType::GradOutput), rowByRow("reader")},
      .conditions = {scalesNeedOnlyRows("linear", TensorType::GradOutput), hasNoGroups("linear")},
      .becomes = "quantize",
  };
}

}  // namespace fuseline::rules
