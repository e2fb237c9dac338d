// Kernel "BasicLinear": y = x W^T; backward dx = dy W and dW = dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/linear_parts.h"

namespace fuseline::cpu::kernels {

namespace {
namespace linear_parts {

class LinearForward final : public Kernel {
 public:
  LinearForward(Gemm gemm, LinearForwardStep step) : m_gemm(std::move(gemm)), m_step(std::move(step)) {}
  std::size_t workspaceBytes() const override { return m_gemm.workspaceBytes(); }
  void run(Pointers operands, std::byte* workspace) override {
    m_gemm.multiply(m_step.x.at(operands), m_step.weight.at(operands), m_step.y.at(operands), workspace);
  }

 private:
  Gemm m_gemm;
  LinearForwardStep m_step;
};

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  Result<LinearForwardStep> step = readLinearForward(request);
  if (!step) return step.error();
  Gemm gemm(forwardProblem(request, step->size, step->x, step->weight, step->y));
  return std::unique_ptr<Kernel>(std::make_unique<LinearForward>(std::move(gemm), std::move(*step)));
}

}  // namespace linear_parts
}  // namespace

KernelDef linear();

KernelDef linear() {
  using namespace linear_parts;
  return {
      .name = "BasicLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .compile =
          [](const CompileRequest& request) {
            return request.step.phase == Phase::Forward ? compileForward(request) : compileLinearBackward(request);
          },
      .multipliesCodes = true,
  };
}

}  // namespace fuseline::cpu::kernels
