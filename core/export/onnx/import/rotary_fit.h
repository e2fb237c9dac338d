// Rotary embeddings from tables of their cosines and sines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <cstdint>
#include <vector>

namespace fuseline {

/// Cosines and sines, [positions, pairs].
struct AngleTable {
  std::int64_t rows = 0, pairs = 0;
  std::vector<double> cosines, sines;
  double tolerance = 0.0;  // of an element, by the dtype it was written in
  double rounding = 0.0;   // of an element that was quantized; 0: it was not
};

/// Adds offset, base and scaling to the attributes of a RotaryPositionEmbedding, so that it has these numbers. False:
/// no attributes give them.
bool fitRotary(Json& attributes, const AngleTable& table);

}  // namespace fuseline
