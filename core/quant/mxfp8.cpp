// MXFP8: blocks of 32 elements (or 32x32) that share a power of two.
// Source: OCP Microscaling Formats v1.0, with the rounding of scales as TransformerEngine does it.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/e8m0.h"
#include "core/quant/scalers.h"

namespace fuseline {

namespace {

BlockScaler makeMxfp8Scaler(const ScalerContext& context) {
  return eachBlock([inverseOfMax = mxInverseOfMax(context.spec.format)](float blockAmax) {
    const std::uint8_t code = mxScaleCode(blockAmax, inverseOfMax);
    return BlockScale<std::uint8_t>{E8m0::reciprocal(code), code};
  });
}

float dequantMxfp8Factor(std::uint32_t stored, float) { return E8m0::toFloat(static_cast<std::uint8_t>(stored)); }

}  // namespace

const ScalingFamily scaling_families::mxfp8 = {makeMxfp8Scaler, dequantMxfp8Factor};

}  // namespace fuseline
