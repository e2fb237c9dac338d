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
namespace linear_backward_add_parts {

constexpr int kBranch = 0;  // MakeExtraOutput
constexpr int kLinear = 1;
constexpr OperandKey kSums{.member = -1, .kind = OperandKind::Output, .slot = 0};
constexpr OperandKey kExtraGradient{.member = kBranch, .kind = OperandKind::GradOutput, .slot = 1};
constexpr OperandKey kGradInput{.member = kBranch, .kind = OperandKind::GradInput, .slot = 0};

class LinearBackwardAdd final : public Kernel {
 public:
  LinearBackwardAdd(std::optional<PanelGemm> inputGrad, WeightGrad weightGrad, LinearGradStep step)
      : m_inputGrad(std::move(inputGrad)), m_weightGrad(std::move(weightGrad)), m_step(std::move(step)) {}

  std::size_t workspaceBytes() const override {
    return std::max(m_inputGrad ? m_inputGrad->workspaceBytes() : 0, m_weightGrad.workspaceBytes());
  }

  void run(Pointers operands, std::byte* workspace) override {
    if (m_inputGrad) m_inputGrad->run(m_step.gradOutput.at(operands), m_step.factor.at(operands), operands, workspace);
    m_weightGrad.run(operands, workspace);
  }

 private:
  std::optional<PanelGemm> m_inputGrad;
  WeightGrad m_weightGrad;
  LinearGradStep m_step;  // of the input's gradient
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
  const LinearGradMembers members{.linear = kLinear, .gradOutput = kLinear, .gradInput = kBranch};
  Result<WeightGrad> weightGrad = WeightGrad::make(request, members);
  if (!weightGrad) return weightGrad.error();
  const Result<LinearGradStep> step = readInputGrad(request, members);
  if (!step) return step.error();
  std::optional<PanelGemm> inputGrad;
  if (step->result) {
    const ElementwiseProgram program = addProgram(static_cast<bool>(findOperand(request, kExtraGradient)));
    Result<std::vector<PanelOperand>> operands = panelOperands(request, program, {kSums});
    if (!operands) return operands.error();
    inputGrad.emplace(inputGradProblem(request, step->size, step->gradOutput, step->factor, step->result.spec.dtype),
                      kSums, program, std::move(*operands), request.settings.threads);
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<LinearBackwardAdd>(std::move(inputGrad), std::move(*weightGrad), *step));
}

}  // namespace linear_backward_add_parts
}  // namespace

KernelDef linear_backward_add();

KernelDef linear_backward_add() {
  using namespace linear_backward_add_parts;
  return {
      .name = "linear_backward_add",
      .phases = {Phase::Backward},
      .compile = compile,
  };
}

}  // namespace fuseline::cpu::kernels
