// The three GEMMs of a linear layer, shared by the kernels of linear ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"
#include "kernels/common/linear_step.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/kernel_def.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace fuseline::cuda {

/// y = x W^T
GemmProblem forwardProblem(const LinearSize& size, const Binding& x, const Binding& weight, const TensorSpec& y);
/// dx = dy W
GemmProblem inputGradProblem(const LinearSize& size, const Binding& dy, const Binding& weight, const TensorSpec& dx);
/// dW = dy^T x, or dW += dy^T x if the step requests accumulation.
GemmProblem weightGradProblem(const LinearSize& size, const Binding& dy, const Binding& x, const Binding& dw);

/// Sets the row strides of matrices that are columns of wider tensors.
void setRows(GemmProblem& problem, const Binding& a, const Binding& b, const Binding& c);

/// One GEMM of a step, and the operand indices of its matrices.
struct Product {
  GemmProblem problem;
  Binding a;
  Binding b;
  Binding c;
  Binding bias = {};
  Binding addend = {};  // c itself where the step accumulates
  Binding geluInput = {};
  Binding preActivation = {};
  Binding biasGrad = {};
  bool isQuantized = false;  // c: the step quantizes it, and need not store it
};

/// A kernel that runs the GEMMs one after the other. Scales of blocks are first converted to cuBLASLt's layout, and
/// quantized factors that it does not multiply with each other are dequantized.
Result<std::unique_ptr<Kernel>> makeProducts(const CompileRequest& request, const std::vector<Product>& products);

/// Results of a linear layer's backward, and of ops fused with it, in addition to the plain GEMMs.
struct LinearBackwardOptions {
  LinearGradMembers members;
  float alpha = 1.0F;
  /// Added to dx; may be absent.
  std::optional<OperandKey> extraGradient = std::nullopt;
  /// Input of the upstream GELU: dx is the gradient of this input.
  std::optional<OperandKey> geluInput = std::nullopt;
  /// Gradient of the downstream bias: dy summed over its rows.
  std::optional<OperandKey> gradBias = std::nullopt;
};

/// dx = alpha dy W + extra gradient, perhaps through GELU, and dW = alpha dy^T x, if they are requested; and db with
/// dW.
Result<std::unique_ptr<Kernel>> compileLinearBackward(const CompileRequest& request,
                                                      const LinearBackwardOptions& options);

/// The input of the addition that is not the GEMM's result. add: the member. Errors: those of requireOperand().
Result<Binding> residualOf(const CompileRequest& request, int add);

/// Whether the tensors of the ops after a linear layer have the dtype of the GEMM; no names the op.
Verdict haveDTypeOfProduct(const Graph& graph, std::span<const NodeId> members);

/// Can a GEMM apply the factor of this ConstantScale? Not a factor of 0: cuBLASLt then skips the multiplication,
/// including NaN and infinity, and on an H100 (cuBLASLt 13.1) even the addend of a GEMM with one row in float32.
Verdict scalesProduct(const Node& scale);

/// Whether cuBLASLt can take the matrices of this linear op, or the sentence why not.
Verdict fitsLibrary(const Graph& graph, const Node& linear);

}  // namespace fuseline::cuda
