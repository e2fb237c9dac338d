// Hand-overs: which entries also write the quantized copies that the next linear op reads.
// Source: TransformerEngine hands quantizers from op to op (next_op_input_quantizer,
// prev_op_grad_output_quantizer in its fuser.py).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

namespace fuseline {

/// Tries the hand-over rules at every quantized tensor that an op of the pipeline makes. Precondition: both lists of
/// the report stand.
void addHandOvers(const Graph& graph, const FusionOptions& options, const RuleCatalog& rules, FusionReport& report);

}  // namespace fuseline
