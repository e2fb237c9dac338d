// What the host tells the device of a quantizer: plain data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline::cuda::device {

enum class FloatCode : std::uint8_t { E4M3, E5M2 };

struct ScaleRule {
  float epsilon = 0.0f;  // a smaller amax counts as this one
  bool isPowerOfTwo = false;
  float ifInfinite = 0x1.fffffep127f;  // stands in for a scale that float32 cannot hold
};

}  // namespace fuseline::cuda::device
