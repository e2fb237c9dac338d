// Quantization of what a rotary embedding stores.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/amax.h"
#include "kernels/cuda/device/code_tile.h"
#include "kernels/cuda/device/elements.h"

#include <cstdint>

namespace fuseline::cuda::device {

template <class Codes>
__device__ bool isWanted(const Codes& codes) {
  return codes.codes || codes.amax;
}

/// Quantizes the results that a thread stores, and finds their amax.
/// Codes: RotaryCodes.
template <Element kElement, int kVector, class Codes>
class RotaryCodeWriter {
 public:
  __device__ explicit RotaryCodeWriter(const Codes& task) : m_task(task) {}

  /// index: of the first value in the tensor.
  __device__ void put(std::int64_t index, const float (&values)[kVector]) {
    float stored[kVector];
#pragma unroll
    for (int v = 0; v < kVector; ++v) stored[v] = values[v];
    roundTo(kElement, stored);
#pragma unroll
    for (int v = 0; v < kVector; ++v) m_largest = largerOf(fabsf(stored[v]), m_largest);
    if (!m_task.codes) return;
    std::uint8_t* const to = m_task.codes + index;
    FUSELINE_WRITES(to, kVector);
    if constexpr (kVector == kPatch) {
      float multipliers[kPatch];
      fill(*m_task.scale, multipliers);
      *reinterpret_cast<CodePacket*>(to) = encodePacket(stored, multipliers, m_task.code);
    } else {
      *to = encode(stored[0] * *m_task.scale, m_task.code);
    }
  }

  /// All threads of a warp call it.
  __device__ void finish() const {
    if (!m_task.amax) return;
    float largest = m_largest;
    for (int offset = kWarpLanes / 2; offset > 0; offset /= 2)
      largest = largerOf(__shfl_xor_sync(0xffffffffu, largest, offset), largest);
    raiseTo(m_task.amax, largest, static_cast<int>(threadIdx.x) % kWarpLanes);
  }

 private:
  const Codes& m_task;
  float m_largest = 0.0f;
};

}  // namespace fuseline::cuda::device
