// Histograms of magnitudes in JSON output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/numerics.h"

namespace fuseline {

/// {"firstExponent": -3, "counts": [1, 0, 5], "zeros": 2}
Json toJson(const MagnitudeHistogram& magnitudes);
/// The inverse.
MagnitudeHistogram magnitudesIn(JsonFields& fields);

}  // namespace fuseline
