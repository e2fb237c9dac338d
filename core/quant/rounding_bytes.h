// Where stochastic rounding takes its bits from, on every device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/random.h"
#include "core/tensor/scaling.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace fuseline {

/// Random bytes of the quantized tensor with this name: an element uses the byte at its position in the tensor.
inline RandomBytes roundingBytes(std::uint64_t seed, std::string_view name, Usage direction) {
  return {seed, std::string(name).append(".").append(directionName(direction))};
}

}  // namespace fuseline
