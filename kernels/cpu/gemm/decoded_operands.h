// Lets any kernel of a linear op read quantized operands: it multiplies their decoded values, and the GEMM's result is
// scaled by the common factor of all values. If few rows meet a constant weight, a kernel that supports it gets the
// weight's encoded values instead. An input with another dtype than the weight is rounded to it likewise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"
#include "kernels/cpu/kernel_def.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace fuseline::cpu {

/// A kernel's view of a step's quantized operands, and of inputs that are rounded first.
struct DecodedOperands {
  struct Operand {
    int index = -1;  // among the operands of the step
    TensorSpec copy;
    DType dtype = DType::BF16;
    /// The matrix, or that of each group, is stored transposed.
    bool isTransposed = false;
    /// The values include all factors: those of groups of rows differ, and attention does not multiply by factors.
    bool includesFactors = false;
    /// The numbers lack the one factor of the whole tensor.
    bool hasFactor = false;
    /// A plain tensor, rounded to this dtype.
    std::optional<DType> roundedTo = {};
    /// The kernel gets the encoded values: nothing is decoded.
    bool staysCoded = false;
    std::int64_t offset = 0;  // of the decoded matrix in the workspace
    /// Factor in the current call.
    float factor = 1.0F;
  };
  std::vector<Operand> operands;
  std::int64_t bytes = 0;
  /// StepRequest::decoded. Factors are those of the operands.
  std::vector<Binding> bindings;
};

/// nullptr when the kernel gets all operands as they are. The addresses of factors stay the same.
std::shared_ptr<DecodedOperands> decodedOperands(const CompileRequest& request, const KernelDef& kernel);

/// A kernel that decodes before the inner one runs. With constant parameters, weights are decoded once.
/// Errors: no memory for these.
Result<std::unique_ptr<Kernel>> decodingKernel(std::unique_ptr<Kernel> inner, std::shared_ptr<DecodedOperands> decoded,
                                               const CompileRequest& request);

}  // namespace fuseline::cpu
