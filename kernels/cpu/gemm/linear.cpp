// Kernel "BasicLinear": y = x W^T; backward dx = dy W and dW = dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/linear_parts.h"

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

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const Result<Binding> y = requireOperand(request, {0, OperandKind::Output, 0});
  if (!y) return y.error();
  const LinearSize size = linearSize(request.member(0), x->spec);
  Gemm gemm(forwardProblem(request, size, *x, *weight, y->spec.dtype));
  return std::unique_ptr<Kernel>(std::make_unique<LinearForward>(std::move(gemm), *x, *weight, *y));
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
            return request.step.phase == Phase::Forward ? compileForward(request) : compileLinearBackward(request);
          },
      .multipliesCodes = true,
  };
}

}  // namespace fuseline::cpu::kernels
