// Kernel "BasicLinear": y = x W^T; backward dx = dy W and dW = dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/linear_parts.h"
#include "kernels/cpu/gemm/quantized_product.h"

namespace fuseline::cpu::kernels {

namespace {
namespace linear_parts {

class LinearForward final : public Kernel {
 public:
  LinearForward(Gemm gemm, LinearForwardStep step, std::optional<QuantizedProduct> quantized)
      : m_gemm(std::move(gemm)), m_step(std::move(step)), m_quantized(std::move(quantized)) {}
  std::size_t workspaceBytes() const override {
    return m_gemm.workspaceBytes() + (m_quantized ? m_quantized->workspaceBytes() : 0);
  }
  void run(Pointers operands, std::byte* workspace) override {
    const auto multiply = [&](std::byte* y, std::byte* scratch) {
      m_gemm.multiply(m_step.x.at(operands), m_step.weight.at(operands), y, scratch);
    };
    if (!m_quantized) return multiply(m_step.y.at(operands), workspace);
    std::byte* const scratch = workspace + m_quantized->workspaceBytes();
    m_quantized->run(operands, workspace, [&](std::byte* y) { multiply(y, scratch); });
  }

 private:
  Gemm m_gemm;
  LinearForwardStep m_step;
  std::optional<QuantizedProduct> m_quantized;
};

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  Result<LinearForwardStep> step = readLinearForward(request);
  if (!step) return step.error();
  std::optional<QuantizedProduct> quantized = QuantizedProduct::ifAny(request);
  const Factor y = quantized ? Factor(quantized->dtype()) : Factor(step->y);
  Gemm gemm(forwardProblem(request, step->size, step->x, step->weight, y));
  return std::unique_ptr<Kernel>(
      std::make_unique<LinearForward>(std::move(gemm), std::move(*step), std::move(quantized)));
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
      .writesCopies = true,
      .multipliesCodes = true,
  };
}

}  // namespace fuseline::cpu::kernels
