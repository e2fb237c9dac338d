// The three norms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline {

enum class NormKind : std::uint8_t { Rms, Layer, L2 };

}  // namespace fuseline
