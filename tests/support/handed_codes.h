// The quantized output of a norm or an activation that a downstream linear op reads under DelayedScaling, compared with
// TransformerEngine's kernels: quantized values and an amax of the float32 numbers, before they are rounded to the
// tensor's dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/runtime/backend.h"
#include "tests/support/run_plan.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::testing {

/// Fails unless an op of this name ("RMSNorm" or "SiLU") on 128 x 256 elements of bf16 produces such quantized values,
/// except for one in a thousand on the border of two, and such an amax.
::testing::AssertionResult handsOnUnrounded(const std::string& operation, std::shared_ptr<Backend> backend);

/// The plan for this backend.
FusionReport fusedFor(const Graph& graph, const std::shared_ptr<Backend>& backend);

/// Does the step that makes the inputs of this op quantize them, or find their amax?
bool isQuantizedByProducer(const Graph& graph, const FusionReport& report, const std::string& op);

/// The same without fused quantization: each quantized tensor has a step of its own.
FusionReport withoutFusedOperands(FusionReport report);
/// The same for those of one op.
FusionReport withoutFusedOperandsOf(const Graph& graph, FusionReport report, const std::string& op);

/// Scales and histories of amaxes after three runs.
std::vector<std::vector<double>> statesOfQuantizers(const Graph& graph, const FusionReport& report,
                                                    const std::shared_ptr<Backend>& backend);

/// Does a step quantize values before they are rounded to a smaller dtype?
bool quantizesUnrounded(const Graph& graph, const FusionReport& report);

/// Empty, or a result that differs by more than quantized values do when two or three of a hundred are the adjacent
/// one, in E4M3 at most an eighth away. Gradients may jump: a ReLU passes on or stops those with inputs close to 0.
std::string differenceOfNextCodes(const RunResults& actual, const RunResults& expected);

}  // namespace fuseline::testing
