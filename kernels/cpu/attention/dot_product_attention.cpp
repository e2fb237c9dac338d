// Kernel "DotProductAttention": binds attention to the operands of a step.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/kernel_def.h"

#include <utility>

namespace fuseline::cpu::kernels {

namespace {

struct InputBindings {
  InputBindings(const CompileRequest& request, const AttentionForm& form)
      : q(findSlot(request, OperandKind::Input, AttentionForm::kQuery)),
        k(findSlot(request, OperandKind::Input, AttentionForm::kKey)),
        v(findSlot(request, OperandKind::Input, AttentionForm::kValue)),
        bias(findSlot(request, OperandKind::Input, form.biasSlot)),
        mask(findSlot(request, OperandKind::Input, form.maskSlot)),
        cuSeqlensQ(findSlot(request, OperandKind::Input, form.cuSeqlensQSlot)),
        cuSeqlensKv(findSlot(request, OperandKind::Input, form.cuSeqlensKvSlot)),
        offset(findOperand(request, {0, OperandKind::Parameter, AttentionForm::kOffset})) {}

  AttentionInputs at(Pointers pointers) const {
    return {.q = q.at(pointers),
            .k = k.at(pointers),
            .v = v.at(pointers),
            .bias = bias.at(pointers),
            .mask = reinterpret_cast<const std::int64_t*>(mask.at(pointers)),
            .cuSeqlensQ = reinterpret_cast<const std::int64_t*>(cuSeqlensQ.at(pointers)),
            .cuSeqlensKv = reinterpret_cast<const std::int64_t*>(cuSeqlensKv.at(pointers)),
            .offset = reinterpret_cast<const float*>(offset.at(pointers))};
  }

  Binding q, k, v, bias, mask, cuSeqlensQ, cuSeqlensKv, offset;
};

class AttentionForward final : public Kernel {
 public:
  AttentionForward(const CompileRequest& request, AttentionProblem problem)
      : m_problem(std::move(problem)),
        m_inputs(request, m_problem.form),
        m_y(findOperand(request, {0, OperandKind::Output, 0})),
        m_lse(findOperand(request, {0, OperandKind::Residual, AttentionForm::kLse})) {}

  std::size_t workspaceBytes() const override { return attentionForwardWorkspaceBytes(m_problem); }
  void run(Pointers pointers, std::byte* workspace) override {
    attentionForward(
        m_problem,
        {.inputs = m_inputs.at(pointers), .y = m_y.at(pointers), .lse = reinterpret_cast<float*>(m_lse.at(pointers))},
        workspace);
  }

 private:
  AttentionProblem m_problem;
  InputBindings m_inputs;
  Binding m_y, m_lse;
};

class AttentionBackward final : public Kernel {
 public:
  AttentionBackward(const CompileRequest& request, AttentionProblem problem)
      : m_problem(std::move(problem)),
        m_inputs(request, m_problem.form),
        m_y(findOperand(request, {0, OperandKind::Output, 0})),
        m_gradY(findOperand(request, {0, OperandKind::GradOutput, 0})),
        m_lse(findOperand(request, {0, OperandKind::Residual, AttentionForm::kLse})),
        m_gradQ(findSlot(request, OperandKind::GradInput, AttentionForm::kQuery)),
        m_gradK(findSlot(request, OperandKind::GradInput, AttentionForm::kKey)),
        m_gradV(findSlot(request, OperandKind::GradInput, AttentionForm::kValue)),
        m_gradBias(findSlot(request, OperandKind::GradInput, m_problem.form.biasSlot)),
        m_gradOffset(findOperand(request, {0, OperandKind::GradParameter, AttentionForm::kOffset})) {}

  std::size_t workspaceBytes() const override { return attentionBackwardWorkspaceBytes(m_problem); }
  void run(Pointers pointers, std::byte* workspace) override {
    attentionBackward(m_problem,
                      {.inputs = m_inputs.at(pointers),
                       .y = m_y.at(pointers),
                       .dy = m_gradY.at(pointers),
                       .lse = reinterpret_cast<const float*>(m_lse.at(pointers)),
                       .dq = m_gradQ.at(pointers),
                       .dk = m_gradK.at(pointers),
                       .dv = m_gradV.at(pointers),
                       .dbias = m_gradBias.at(pointers),
                       .doffset = reinterpret_cast<float*>(m_gradOffset.at(pointers))},
                      workspace);
  }

 private:
  AttentionProblem m_problem;
  InputBindings m_inputs;
  Binding m_y, m_gradY, m_lse, m_gradQ, m_gradK, m_gradV, m_gradBias, m_gradOffset;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<fuseline::AttentionProblem> read = attentionProblem(request);
  if (!read) return read.error();
  AttentionProblem problem{std::move(*read), request.settings.threads};
  if (request.step.phase == Phase::Forward)
    return std::unique_ptr<Kernel>(std::make_unique<AttentionForward>(request, std::move(problem)));
  return std::unique_ptr<Kernel>(std::make_unique<AttentionBackward>(request, std::move(problem)));
}

}  // namespace

KernelDef dot_product_attention();

KernelDef dot_product_attention() {
  return {
      .name = "DotProductAttention",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compile,
  };
}

}  // namespace fuseline::cpu::kernels
