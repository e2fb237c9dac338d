// The three GEMMs of a linear layer, shared by the kernels of linear ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/linear_step.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/kernel_def.h"

namespace fuseline::cpu {

/// Can the GEMM add a bias of this dtype itself?
bool canAdd(const GemmProblem& problem, DType bias);

/// Properties of an operand that a GEMM needs.
struct Factor {
  // Implicit, because a binding or a dtype is all that callers have.
  Factor(DType plain) : dtype(plain) {}
  Factor(const Binding& binding)
      : dtype(binding.spec.dtype),
        isTransposed(binding.isTransposed),
        scale(binding.factor),
        row(binding.rowStride),
        isAddedTo(binding.access == OperandAccess::Accumulate),
        codes(binding.codes) {}

  DType dtype;
  bool isTransposed = false;
  const float* scale = nullptr;
  std::int64_t row = 0;  // see GemmProblem
  bool isAddedTo = false;
  std::optional<ElementFormat> codes;
};

/// y = x W^T. W is packed once when parameters are constant.
GemmProblem forwardProblem(const CompileRequest& request, const LinearSize& size, const Factor& x, const Factor& weight,
                           const Factor& y);
/// dx = dy W, or dx += dy W if the step requests accumulation.
GemmProblem inputGradProblem(const CompileRequest& request, const LinearSize& size, const Factor& dy,
                             const Factor& weight, const Factor& dx);
/// dW = dy^T x, or dW += dy^T x if the step requests accumulation.
GemmProblem weightGradProblem(const CompileRequest& request, const LinearSize& size, const Factor& dy, const Factor& x,
                              const Binding& dw);

/// dW = dy^T x of one member, if it is requested.
class WeightGrad {
 public:
  /// Absent when the step has no gradient for the parameter. dW = alpha dy^T x.
  static Result<WeightGrad> make(const CompileRequest& request, const LinearGradMembers& members, float alpha = 1.0F);

  explicit operator bool() const { return static_cast<bool>(m_step.result); }
  std::size_t workspaceBytes() const { return m_gemm ? m_gemm->workspaceBytes() : 0; }
  void run(Pointers pointers, std::byte* workspace);

 private:
  LinearGradStep m_step;
  std::shared_ptr<Gemm> m_gemm;
};

/// dx = alpha dy W and dW = alpha dy^T x of member 0, if they are requested; dy is the gradient of the last member's
/// output.
Result<std::unique_ptr<Kernel>> compileLinearBackward(const CompileRequest& request, float alpha = 1.0F);

}  // namespace fuseline::cpu
