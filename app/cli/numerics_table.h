// The tables of `fuseline run --numerics`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/numerics.h"

#include <string>

namespace fuseline::cli {

/// What quantization lost of each tensor, how far every result is from float32 and the fused run from the unfused one,
/// and where NaN or infinity came from. Fits 120 columns.
std::string numericsTable(const NumericsReport& report, bool hasColour);

}  // namespace fuseline::cli
