// The tables of `fuseline run --numerics`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/numerics.h"

#include <string>

namespace fuseline::cli {

/// The quantization error of each tensor, the distance of each result from float32 and of the fused run from the
/// unfused one, and the origin of NaN and infinity. Fits 120 columns.
std::string numericsTable(const NumericsReport& report, bool hasColour);

}  // namespace fuseline::cli
