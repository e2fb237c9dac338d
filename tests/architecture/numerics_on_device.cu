// Uses the number formats of core/numerics in device code: they must compile for every architecture of the module.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"

__global__ void roundTrip(float* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  values[i] = fuseline::bf16ToFloat(fuseline::floatToBf16(values[i]));
  values[i] = fuseline::f16ToFloat(fuseline::floatToF16(values[i]));
}
