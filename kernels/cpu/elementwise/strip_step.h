// Runs an elementwise program on the operands of a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/gemm/panel_gemm.h"
#include "kernels/cpu/kernel_def.h"

#include <memory>
#include <vector>

namespace fuseline::cpu {

/// Every place that a program reads or writes, in order of appearance; one per operand.
std::vector<OperandPlace> placesOf(const ElementwiseProgram& program);

/// The step's operands that a program names, except `internal` ones. Errors: the step lacks one.
Result<std::vector<PanelOperand>> panelOperands(const CompileRequest& request, const ElementwiseProgram& program,
                                                const std::vector<OperandKey>& internal);

/// A kernel that runs the program over the grid of the step's full operands.
Result<std::unique_ptr<Kernel>> makeStripKernel(const CompileRequest& request, const ElementwiseProgram& program);

/// Yes if every member is an elementwise op.
Verdict areElementwise(const Graph& graph, std::span<const NodeId> members);

}  // namespace fuseline::cpu
