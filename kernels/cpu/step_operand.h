// Finds a kernel's tensors among the operands of a step, quantized ones as the decoded numbers that the kernel gets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"
#include "kernels/cpu/kernel_def.h"

#include <optional>

namespace fuseline::cpu {

struct Binding : fuseline::Binding {
  /// Describe a quantized operand whose decoded values the kernel reads: the matrix is stored transposed, and all its
  /// values are to be multiplied by the factor.
  bool isTransposed = false;
  const float* factor = nullptr;
  /// The kernel gets encoded values in this format instead of decoded ones.
  std::optional<ElementFormat> codes;
};

/// As the functions of core/runtime/step_operand.h.
Binding findOperand(const CompileRequest& request, const OperandKey& key, std::optional<Direction> gemm = std::nullopt);
Result<Binding> requireOperand(const CompileRequest& request, const OperandKey& key,
                               std::optional<Direction> gemm = std::nullopt);

}  // namespace fuseline::cpu
