// What a linear op behind a norm or an activation gets of it under DelayedScaling, and what TransformerEngine's kernels
// would give it: codes and an amax of the float32 numbers, before they are rounded to the tensor's dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/runtime/backend.h"
#include "tests/support/run_plan.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace fuseline::testing {

/// Fails unless an op of this name ("RMSNorm" or "SiLU") behind 128 x 256 elements of bf16 hands on such codes, but for
/// one in a thousand that lie on the border of two, and such an amax.
::testing::AssertionResult handsOnUnrounded(const std::string& operation, std::shared_ptr<Backend> backend);

/// Does a step quantize what it has not rounded to a dtype that is smaller?
bool quantizesUnrounded(const Graph& graph, const FusionReport& report);

/// Empty, or a result that differs by more than codes do of which two or three of a hundred are the next one, in E4M3
/// at most an eighth away. Gradients may jump: a ReLU passes on or stops those of which the input is next to 0.
std::string differenceOfNextCodes(const RunResults& actual, const RunResults& expected);

}  // namespace fuseline::testing
