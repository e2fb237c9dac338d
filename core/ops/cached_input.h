// cache_quantized_input: an activation that keeps its input for backward in E4M3 instead of its own dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

namespace fuseline {

/// The slots of its residuals.
constexpr int kQuantizedInput = 0;  // [...] E4M3: x scale, rounded to nearest even and saturated
constexpr int kInverseScale = 1;    // [1] f32: 1 / scale

/// scale = fl(448 / amax); 1 where amax is 0 or not finite. 448 is the largest E4M3
/// (Float8CurrentScaling).
float currentScale(float amax);

/// The activation itself, forward or backward, as member 0 of a step. operation: a form that withCachedInput() made.
ElementwiseProgram cachedActivationProgram(const FusibleOperation& operation, const Attributes& attributes,
                                           bool isBackward);

/// The activation with the attribute cache_quantized_input, and its form with that attribute on: forward is the same,
/// but x is kept in E4M3 with one scale per tensor, one byte per element, and backward computes from that, decoded to
/// the dtype of x (TransformerEngine's maybe_dequantize). Precondition: the op has one input, and keeps only that.
BasicOperation withCachedInput(BasicOperation plain);

}  // namespace fuseline
