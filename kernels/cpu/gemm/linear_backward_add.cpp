// Kernel "linear_backward_add": backward of MakeExtraOutput and a linear layer. dx = dy W + extra gradient and
// dW = dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_step.h"
#include "kernels/cpu/gemm/linear_parts.h"
#include "kernels/cpu/gemm/panel_gemm.h"

#include <algorithm>
#include <optional>

namespace fuseline::cpu::kernels {

namespace {

constexpr int kBranch = 0;  // MakeExtraOutput
constexpr int kLinear = 1;
constexpr OperandKey kSums{.member = -1, .kind = OperandKind::Output, .slot = 0};
constexpr OperandKey kExtraGradient{.member = kBranch, .kind = OperandKind::GradOutput, .slot = 1};
constexpr OperandKey kGradInput{.member = kBranch, .kind = OperandKind::GradInput, .slot = 0};

class LinearBackwardAdd final : public Kernel {
 public:
  LinearBackwardAdd(std::optional<PanelGemm> inputGrad, WeightGrad weightGrad, Binding gradOutput, Binding weight)
      : m_inputGrad(std::move(inputGrad)),
        m_weightGrad(std::move(weightGrad)),
        m_gradOutput(std::move(gradOutput)),
        m_weight(std::move(weight)) {}

  std::size_t workspaceBytes() const override {
    return std::max(m_inputGrad ? m_inputGrad->workspaceBytes() : 0, m_weightGrad.workspaceBytes());
  }

  void run(Pointers operands, std::byte* workspace) override {
    if (m_inputGrad) m_inputGrad->run(m_gradOutput.at(operands), m_weight.at(operands), operands, workspace);
    m_weightGrad.run(operands, workspace);
  }

 private:
  std::optional<PanelGemm> m_inputGrad;
  WeightGrad m_weightGrad;
  Binding m_gradOutput, m_weight;
};

/// sums + extra gradient, or the sums alone.
ElementwiseProgram addProgram(bool hasExtra) {
  ElementwiseProgram program;
  program.code = {{.opcode = Opcode::Load, .place = {.operand = kSums}}};
  if (hasExtra) {
    program.code.push_back({.opcode = Opcode::Load, .place = {.operand = kExtraGradient}});
    program.code.push_back({.opcode = Opcode::Add, .a = 0, .b = 1});
  }
  program.stores = {{.value = static_cast<ValueIndex>(program.code.size()) - 1, .place = {.operand = kGradInput}}};
  return program;
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<WeightGrad> weightGrad = WeightGrad::make(request, kLinear);
  if (!weightGrad) return weightGrad.error();
  const Result<Binding> gradOutput = requireOperand(request, {kLinear, OperandKind::GradOutput, 0}, Direction::Rowwise);
  if (!gradOutput) return gradOutput.error();
  const Binding gradInput = findOperand(request, kGradInput);
  if (!gradInput)
    return std::unique_ptr<Kernel>(
        std::make_unique<LinearBackwardAdd>(std::nullopt, std::move(*weightGrad), *gradOutput, Binding{}));
  const Result<Binding> weight = requireOperand(request, {kLinear, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const LinearSize size = linearSize(request.member(kLinear), gradInput.spec);
  const ElementwiseProgram program = addProgram(static_cast<bool>(findOperand(request, kExtraGradient)));
  Result<std::vector<PanelOperand>> operands = panelOperands(request, program, {kSums});
  if (!operands) return operands.error();
  PanelGemm gemm(inputGradProblem(request, size, *gradOutput, *weight, gradInput.spec.dtype), kSums, program,
                 std::move(*operands), request.settings.threads);
  return std::unique_ptr<Kernel>(
      std::make_unique<LinearBackwardAdd>(std::move(gemm), std::move(*weightGrad), *gradOutput, *weight));
}

}  // namespace

KernelDef linear_backward_add();

KernelDef linear_backward_add() {
  return {
      .name = "linear_backward_add",
      .phases = {Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = compile,
  };
}

}  // namespace fuseline::cpu::kernels
