// Fields that several recipes have, and their reading.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"

namespace fuseline::recipes {

AttributeSpec flag(const char* name, bool value, const char* help);
AttributeSpec choice(const char* name, const char* value, std::vector<std::string> choices, const char* help);

/// "HYBRID": E4M3 forward and E5M2 backward; "E4M3": both. E5M2 in both is refused, as TransformerEngine does.
AttributeSpec formatField(const char* value);
/// Depends on the pass that produces the tensor.
ElementFormat formatOf(const Attributes& fields, TensorType role);

/// Operands of backward: the recipe's, or high precision, or forward's operands dequantized.
AttributeSpec backwardOverride();
/// Whether backward_override leaves an operand to the recipe.
bool isQuantized(const Attributes& fields, OperandRole role);

/// Weights are stored as quantized tensors alone.
AttributeSpec quantizedModelInit();

/// FP8 in attention (core/quant/attention_quantizers.h). fp8_mha only exists so that files can contain it.
std::vector<AttributeSpec> attentionFlags();

/// Whether Hopper promotes the partial sums of each GEMM. dgrad and wgrad do.
std::vector<AttributeSpec> splitAccumulators(bool forward);

/// One epsilon a tensor role.
std::vector<AttributeSpec> amaxEpsilons();
/// From them and use_power_2_scales.
ScaleOptions scaleOptionsOf(const Attributes& fields, TensorType role);

std::vector<AttributeSpec> joined(std::vector<std::vector<AttributeSpec>> lists);

}  // namespace fuseline::recipes
