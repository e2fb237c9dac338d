// Angles as the kernels of rotary embeddings take them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace fuseline::cuda {

/// In 2^-64 of a full turn. Whole turns do not count.
inline std::uint64_t turnsOf(double radians) {
  const double turns = radians / (2.0 * std::numbers::pi);
  const double fraction = turns - std::floor(turns);
  return static_cast<std::uint64_t>(std::ldexp(fraction, 63)) * 2;
}

}  // namespace fuseline::cuda
