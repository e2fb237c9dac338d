// Comparing tensors in double precision.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tolerance.h"

#include <span>

#include <gtest/gtest.h>

namespace fuseline::testing {

/// Fails with the number of offending elements and the worst one: its index, both values and the error. A NaN equals
/// only a NaN. The sizes must agree.
::testing::AssertionResult allClose(std::span<const double> actual, std::span<const double> expected,
                                    Tolerance tolerance);

}  // namespace fuseline::testing
