// How the factors of GEMMs are stored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline {

/// Storage order of a row-major factor: as the GEMM reads it, or transposed.
enum class Storage2d : std::uint8_t { AsRead, Transposed };

}  // namespace fuseline
