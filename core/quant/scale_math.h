// Scales from amaxes, in float32 and in the order in which TransformerEngine's kernels compute them, so that the bits
// agree. A scale multiplies before the cast; its inverse is stored. The scales of NVFP4 are in core/numerics.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/e8m0.h"
#include "core/numerics/nvfp4.h"
#include "core/tensor/dtype.h"
#include "core/tensor/element_format.h"
#include "core/tensor/quantizer_spec.h"

#include <cstdint>
#include <span>

namespace fuseline {

/// The largest |value|; 0 without values. NaN is ignored, infinity is not.
float amaxOf(std::span<const float> values);

/// The largest finite value of a floating-point dtype.
float largestFinite(DType dtype);

/// maxFinite / amax: one tensor with current scaling, or one FP8 block. `ifInfinite` replaces an infinite quotient. 1
/// where amax is 0, infinite or NaN.
float scaleFromAmax(float amax, float maxFinite, float ifInfinite, ScaleOptions options);

/// The scale of delayed scaling: (maxFinite / 2^margin) / amax. Stays `previous` where amax is 0, infinite or NaN.
float delayedScale(float amax, float previous, float maxFinite, int margin);

/// MXFP8: the E8M0 code of amax / maxFinite, rounded up so that amax fits. Its multiplier is E8m0::reciprocal. In two
/// steps, for many blocks: 1 / maxFinite, and the code.
float mxInverseOfMax(ElementFormat format);
inline std::uint8_t mxScaleCode(float amax, float inverseOfMax) {
  return E8m0::fromFloat(amax * inverseOfMax, E8m0::Rounding::Up);
}

}  // namespace fuseline
