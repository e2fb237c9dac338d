// Problems of linear layers in the terms of Gemm.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/linear_parts.h"

#include <algorithm>
#include <optional>

namespace fuseline::cpu {

LinearSize linearSize(const Node& node, const TensorSpec& x) {
  const Shape& weight = node.parameters.front().shape;
  return {.m = x.rows(), .n = weight[0], .k = weight[1]};
}

bool canAdd(const GemmProblem& problem, DType bias) {
  const bool isNative = problem.cType == DType::F32 || (problem.cType == DType::BF16 && problem.isBf16Native);
  const bool isScaled = problem.aFactor || problem.bFactor;
  return isNative && bias == problem.cType && problem.k > 0 && !isScaled;
}

namespace {

Packing packingOf(const CompileRequest& request) {
  return request.options.parametersAreConstant ? Packing::OnceForever : Packing::EveryRun;
}

Storage2d storage(bool isTransposed) { return isTransposed ? Storage2d::Transposed : Storage2d::AsRead; }

}  // namespace

GemmProblem forwardProblem(const CompileRequest& request, const LinearSize& size, const Factor& x, const Factor& weight,
                           DType y) {
  return {.m = size.m,
          .n = size.n,
          .k = size.k,
          .a = storage(x.isTransposed),
          .b = storage(!weight.isTransposed),
          .aType = x.dtype,
          .bType = weight.dtype,
          .bCodes = weight.codes,
          .cType = y,
          .aFactor = x.scale,
          .bFactor = weight.scale,
          .packing = packingOf(request),
          .isBf16Native = request.settings.isBf16GemmNative};
}

GemmProblem inputGradProblem(const CompileRequest& request, const LinearSize& size, const Factor& dy,
                             const Factor& weight, DType dx) {
  return {.m = size.m,
          .n = size.k,
          .k = size.n,
          .a = storage(dy.isTransposed),
          .b = storage(weight.isTransposed),
          .aType = dy.dtype,
          .bType = weight.dtype,
          .cType = dx,
          .aFactor = dy.scale,
          .bFactor = weight.scale,
          .packing = packingOf(request),
          .isBf16Native = request.settings.isBf16GemmNative};
}

GemmProblem weightGradProblem(const CompileRequest& request, const LinearSize& size, const Factor& dy, const Factor& x,
                              const Binding& dw) {
  return {.m = size.n,
          .n = size.k,
          .k = size.m,
          .a = storage(!dy.isTransposed),
          .b = storage(x.isTransposed),
          .aType = dy.dtype,
          .bType = x.dtype,
          .cType = dw.spec.dtype,
          .aFactor = dy.scale,
          .bFactor = x.scale,
          .accumulates = dw.access == OperandAccess::Accumulate,
          .isBf16Native = request.settings.isBf16GemmNative};
}

Result<WeightGrad> WeightGrad::make(const CompileRequest& request, int member, int gradientOf, float alpha) {
  WeightGrad grad;
  grad.m_gradient = findOperand(request, {member, OperandKind::GradParameter, 0});
  if (!grad.m_gradient) return grad;
  const Result<Binding> gradOutput =
      requireOperand(request, {gradientOf, OperandKind::GradOutput, 0}, Direction::Columnwise);
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> input = requireOperand(request, {member, OperandKind::Input, 0});
  if (!input) return input.error();
  grad.m_gradOutput = *gradOutput;
  grad.m_input = *input;
  const LinearSize size = linearSize(request.member(static_cast<std::size_t>(member)), input->spec);
  GemmProblem problem = weightGradProblem(request, size, *gradOutput, *input, grad.m_gradient);
  problem.alpha = alpha;
  grad.m_gemm = std::make_shared<Gemm>(problem);
  return grad;
}

void WeightGrad::run(Pointers pointers, std::byte* workspace) {
  if (!m_gemm) return;
  m_gemm->multiply(m_gradOutput.at(pointers), m_input.at(pointers), m_gradient.at(pointers), workspace);
}

namespace {

class LinearBackward final : public Kernel {
 public:
  LinearBackward(std::optional<Gemm> inputGrad, WeightGrad weightGrad, Binding gradOutput, Binding weight,
                 Binding gradInput)
      : m_inputGrad(std::move(inputGrad)),
        m_weightGrad(std::move(weightGrad)),
        m_gradOutput(std::move(gradOutput)),
        m_weight(std::move(weight)),
        m_gradInput(std::move(gradInput)) {}

  std::size_t workspaceBytes() const override {
    return std::max(m_inputGrad ? m_inputGrad->workspaceBytes() : 0, m_weightGrad.workspaceBytes());
  }

  void run(Pointers operands, std::byte* workspace) override {
    if (m_inputGrad)
      m_inputGrad->multiply(m_gradOutput.at(operands), m_weight.at(operands), m_gradInput.at(operands), workspace);
    m_weightGrad.run(operands, workspace);
  }

 private:
  std::optional<Gemm> m_inputGrad;
  WeightGrad m_weightGrad;
  Binding m_gradOutput, m_weight, m_gradInput;
};

}  // namespace

Result<std::unique_ptr<Kernel>> compileLinearBackward(const CompileRequest& request, float alpha) {
  const int last = static_cast<int>(request.step.nodes.size()) - 1;
  Result<WeightGrad> weightGrad = WeightGrad::make(request, 0, last, alpha);
  if (!weightGrad) return weightGrad.error();
  const Binding gradInput = findOperand(request, {0, OperandKind::GradInput, 0});
  if (!gradInput)
    return std::unique_ptr<Kernel>(
        std::make_unique<LinearBackward>(std::nullopt, std::move(*weightGrad), Binding{}, Binding{}, Binding{}));
  const Result<Binding> gradOutput = requireOperand(request, {last, OperandKind::GradOutput, 0}, Direction::Rowwise);
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const LinearSize size = linearSize(request.member(0), gradInput.spec);
  GemmProblem problem = inputGradProblem(request, size, *gradOutput, *weight, gradInput.spec.dtype);
  problem.alpha = alpha;
  return std::unique_ptr<Kernel>(
      std::make_unique<LinearBackward>(Gemm(problem), std::move(*weightGrad), *gradOutput, *weight, gradInput));
}

}  // namespace fuseline::cpu
