// Runs an elementwise program on the operands of a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/kernel_def.h"

#include <memory>

namespace fuseline::cuda {

/// A kernel that runs the program over the grid of the step's full operands.
Result<std::unique_ptr<Kernel>> makeElementwiseKernel(const CompileRequest& request, const ElementwiseProgram& program);

/// Yes if every member is an elementwise op.
Verdict areElementwise(const Graph& graph, std::span<const NodeId> members);

}  // namespace fuseline::cuda
