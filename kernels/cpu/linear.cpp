// Kernel "BasicLinear": y = x W^T; backward dx = dy W and dW = dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear_parts.h"

#include <algorithm>
#include <optional>

namespace fuseline::cpu::kernels {

namespace {

class LinearForward final : public Kernel {
 public:
  LinearForward(Gemm gemm, Binding x, Binding weight, Binding y)
      : m_gemm(std::move(gemm)), m_x(std::move(x)), m_weight(std::move(weight)), m_y(std::move(y)) {}
  std::size_t workspaceBytes() const override { return m_gemm.workspaceBytes(); }
  void run(Pointers operands, std::byte* workspace) override {
    m_gemm.multiply(m_x.at(operands), m_weight.at(operands), m_y.at(operands), workspace);
  }

 private:
  Gemm m_gemm;
  Binding m_x, m_weight, m_y;
};

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

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const Result<Binding> y = requireOperand(request, {0, OperandKind::Output, 0});
  if (!y) return y.error();
  const LinearSize size = linearSize(request.member(0), x->spec);
  Gemm gemm(forwardProblem(request, size, x->spec.dtype, weight->spec.dtype, y->spec.dtype));
  return std::unique_ptr<Kernel>(std::make_unique<LinearForward>(std::move(gemm), *x, *weight, *y));
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  Result<WeightGrad> weightGrad = WeightGrad::make(request, 0);
  if (!weightGrad) return weightGrad.error();
  const Binding gradInput = findOperand(request, {0, OperandKind::GradInput, 0});
  if (!gradInput)
    return std::unique_ptr<Kernel>(
        std::make_unique<LinearBackward>(std::nullopt, std::move(*weightGrad), Binding{}, Binding{}, Binding{}));
  const Result<Binding> gradOutput = requireOperand(request, {0, OperandKind::GradOutput, 0});
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const LinearSize size = linearSize(request.member(0), gradInput.spec);
  Gemm gemm(inputGradProblem(request, size, gradOutput->spec.dtype, weight->spec.dtype, gradInput.spec.dtype));
  return std::unique_ptr<Kernel>(
      std::make_unique<LinearBackward>(std::move(gemm), std::move(*weightGrad), *gradOutput, *weight, gradInput));
}

}  // namespace

KernelDef linear();

KernelDef linear() {
  return {
      .name = "BasicLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile =
          [](const CompileRequest& request) {
            return request.step.phase == Phase::Forward ? compileForward(request) : compileBackward(request);
          },
  };
}

}  // namespace fuseline::cpu::kernels
