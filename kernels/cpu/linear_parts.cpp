// Problems of linear layers in the terms of Gemm.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear_parts.h"

namespace fuseline::cpu {

LinearSize linearSize(const Node& node, const TensorSpec& x) {
  const Shape& weight = node.parameters.front().shape;
  return {.m = x.rows(), .n = weight[0], .k = weight[1]};
}

bool canAdd(const GemmProblem& problem, DType bias) {
  const bool isNative = problem.cType == DType::F32 || (problem.cType == DType::BF16 && problem.isBf16Native);
  return isNative && bias == problem.cType && problem.k > 0;
}

GemmProblem forwardProblem(const CompileRequest& request, const LinearSize& size, DType x, DType weight, DType y) {
  return {.m = size.m,
          .n = size.n,
          .k = size.k,
          .b = Storage2d::Transposed,
          .aType = x,
          .bType = weight,
          .cType = y,
          .packing = request.options.parametersAreConstant ? Packing::OnceForever : Packing::EveryRun,
          .isBf16Native = request.settings.isBf16GemmNative};
}

GemmProblem inputGradProblem(const CompileRequest& request, const LinearSize& size, DType dy, DType weight, DType dx) {
  return {.m = size.m,
          .n = size.k,
          .k = size.n,
          .aType = dy,
          .bType = weight,
          .cType = dx,
          .packing = request.options.parametersAreConstant ? Packing::OnceForever : Packing::EveryRun,
          .isBf16Native = request.settings.isBf16GemmNative};
}

GemmProblem weightGradProblem(const CompileRequest& request, const LinearSize& size, DType dy, DType x, DType dw) {
  return {.m = size.n,
          .n = size.k,
          .k = size.m,
          .a = Storage2d::Transposed,
          .aType = dy,
          .bType = x,
          .cType = dw,
          .isBf16Native = request.settings.isBf16GemmNative};
}

Result<WeightGrad> WeightGrad::make(const CompileRequest& request, int member) {
  WeightGrad grad;
  grad.m_gradient = findOperand(request, {member, OperandKind::GradParameter, 0});
  if (!grad.m_gradient) return grad;
  const Result<Binding> gradOutput = requireOperand(request, {member, OperandKind::GradOutput, 0});
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> input = requireOperand(request, {member, OperandKind::Input, 0});
  if (!input) return input.error();
  grad.m_gradOutput = *gradOutput;
  grad.m_input = *input;
  const LinearSize size = linearSize(request.member(static_cast<std::size_t>(member)), input->spec);
  grad.m_gemm = std::make_shared<Gemm>(
      weightGradProblem(request, size, gradOutput->spec.dtype, input->spec.dtype, grad.m_gradient.spec.dtype));
  return grad;
}

void WeightGrad::run(Pointers pointers, std::byte* workspace) {
  if (!m_gemm) return;
  m_gemm->multiply(m_gradOutput.at(pointers), m_input.at(pointers), m_gradient.at(pointers), workspace);
}

}  // namespace fuseline::cpu
