// Uses the number formats of core/numerics in device code: they must compile for every architecture of the module.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/bf16.h"
#include "core/numerics/e8m0.h"
#include "core/numerics/f16.h"
#include "core/numerics/minifloat.h"

__global__ void roundTrip(float* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  values[i] = fuseline::bf16ToFloat(fuseline::floatToBf16(values[i]));
  values[i] = fuseline::f16ToFloat(fuseline::floatToF16(values[i]));
  values[i] = fuseline::E4m3::toFloat(fuseline::E4m3::fromFloat(values[i]));
  values[i] = fuseline::E5m2::toFloat(fuseline::E5m2::fromFloat(values[i], fuseline::Overflow::Propagate));
  values[i] = fuseline::E2m1::toFloat(fuseline::E2m1::fromFloatStochastic(values[i], 128));
  const std::uint8_t scale = fuseline::E8m0::fromFloat(values[i], fuseline::E8m0::Rounding::Up);
  values[i] = fuseline::E8m0::toFloat(scale) * fuseline::E8m0::reciprocal(scale);
}
