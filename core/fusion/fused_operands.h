// Fused quantization: entries that also write the quantized tensors that the next linear op reads.
// Source: TransformerEngine passes quantizers from op to op (next_op_input_quantizer, prev_op_grad_output_quantizer in
// its fuser.py).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

namespace fuseline {

/// Tries the rules of fused quantization at every quantized tensor that an op of the pipeline produces. Precondition:
/// both lists of the report are complete.
void addFusedOperands(const Graph& graph, const FusionOptions& options, const RuleCatalog& rules, FusionReport& report);

}  // namespace fuseline
