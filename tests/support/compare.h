// Comparing tensors in double precision, with the tolerances of the formats.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"

#include <span>

#include <gtest/gtest.h>

namespace fuseline::testing {

/// |actual - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double relative = 0.0;
  double absolute = 0.0;
};

/// The tolerances of TransformerEngine's tests (f32 1.3e-6, f16 1e-3, bf16 1.6e-2; absolute 1e-5; E4M3 0.125, 0.0675);
/// integers are exact.
Tolerance toleranceOf(DType dtype);

/// Fails with the number of offending elements and the worst one: its index, both values and the error. A NaN equals
/// only a NaN. The sizes must agree.
::testing::AssertionResult allClose(std::span<const double> actual, std::span<const double> expected,
                                    Tolerance tolerance);

}  // namespace fuseline::testing
