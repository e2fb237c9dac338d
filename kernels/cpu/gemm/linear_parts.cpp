// Problems of linear layers in the terms of Gemm.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/linear_parts.h"

#include "kernels/cpu/gemm/quantized_product.h"

#include <algorithm>
#include <optional>

namespace fuseline::cpu {

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
                           const Factor& y) {
  return {.m = size.m,
          .n = size.n,
          .k = size.k,
          .a = storage(x.isTransposed),
          .b = storage(!weight.isTransposed),
          .aType = x.dtype,
          .bType = weight.dtype,
          .bCodes = weight.codes,
          .cType = y.dtype,
          .aRow = x.row,
          .cRow = y.row,
          .aFactor = x.scale,
          .bFactor = weight.scale,
          .packing = packingOf(request),
          .isBf16Native = request.settings.isBf16GemmNative};
}

GemmProblem inputGradProblem(const CompileRequest& request, const LinearSize& size, const Factor& dy,
                             const Factor& weight, const Factor& dx) {
  return {.m = size.m,
          .n = size.k,
          .k = size.n,
          .a = storage(dy.isTransposed),
          .b = storage(weight.isTransposed),
          .aType = dy.dtype,
          .bType = weight.dtype,
          .cType = dx.dtype,
          .aRow = dy.row,
          .cRow = dx.row,
          .aFactor = dy.scale,
          .bFactor = weight.scale,
          .accumulates = dx.isAddedTo,
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
          .aRow = dy.row,
          .bRow = x.row,
          .aFactor = dy.scale,
          .bFactor = x.scale,
          .accumulates = dw.access == OperandAccess::Accumulate,
          .isBf16Native = request.settings.isBf16GemmNative};
}

Result<WeightGrad> WeightGrad::make(const CompileRequest& request, const LinearGradMembers& members, float alpha) {
  const Result<LinearGradStep> step = readWeightGrad(request, members);
  if (!step) return step.error();
  WeightGrad grad;
  grad.m_step = *step;
  if (!step->result) return grad;
  GemmProblem problem = weightGradProblem(request, step->size, step->gradOutput, step->factor, step->result);
  problem.alpha = alpha;
  grad.m_gemm = std::make_shared<Gemm>(problem);
  return grad;
}

void WeightGrad::run(Pointers pointers, std::byte* workspace) {
  if (!m_gemm) return;
  m_gemm->multiply(m_step.gradOutput.at(pointers), m_step.factor.at(pointers), m_step.result.at(pointers), workspace);
}

namespace {

class LinearBackward final : public Kernel {
 public:
  LinearBackward(std::optional<Gemm> inputGrad, WeightGrad weightGrad, LinearGradStep step,
                 std::optional<QuantizedProduct> quantized)
      : m_inputGrad(std::move(inputGrad)),
        m_weightGrad(std::move(weightGrad)),
        m_step(std::move(step)),
        m_quantized(std::move(quantized)) {}

  std::size_t workspaceBytes() const override {
    return std::max(m_inputGrad ? resultBytes() + m_inputGrad->workspaceBytes() : 0, m_weightGrad.workspaceBytes());
  }

  void run(Pointers operands, std::byte* workspace) override {
    const auto multiply = [&](std::byte* dx, std::byte* scratch) {
      m_inputGrad->multiply(m_step.gradOutput.at(operands), m_step.factor.at(operands), dx, scratch);
    };
    if (m_quantized)
      m_quantized->run(operands, workspace, [&](std::byte* dx) { multiply(dx, workspace + resultBytes()); });
    else if (m_inputGrad)
      multiply(m_step.result.at(operands), workspace);
    m_weightGrad.run(operands, workspace);
  }

 private:
  std::size_t resultBytes() const { return m_quantized ? m_quantized->workspaceBytes() : 0; }

  std::optional<Gemm> m_inputGrad;
  WeightGrad m_weightGrad;
  LinearGradStep m_step;                        // of the input's gradient
  std::optional<QuantizedProduct> m_quantized;  // the input's gradient
};

}  // namespace

Result<std::unique_ptr<Kernel>> compileLinearBackward(const CompileRequest& request, float alpha) {
  const LinearGradMembers members{.gradOutput = static_cast<int>(request.step.nodes.size()) - 1};
  Result<WeightGrad> weightGrad = WeightGrad::make(request, members, alpha);
  if (!weightGrad) return weightGrad.error();
  const Result<LinearGradStep> step = readInputGrad(request, members);
  if (!step) return step.error();
  std::optional<QuantizedProduct> quantized = QuantizedProduct::ifAny(request);
  std::optional<Gemm> inputGrad;
  if (step->isRequested) {
    const Factor dx = quantized ? Factor(quantized->dtype()) : Factor(step->result);
    GemmProblem problem = inputGradProblem(request, step->size, step->gradOutput, step->factor, dx);
    problem.alpha = alpha;
    inputGrad.emplace(problem);
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<LinearBackward>(std::move(inputGrad), std::move(*weightGrad), *step, std::move(quantized)));
}

}  // namespace fuseline::cpu
