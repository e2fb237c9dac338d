// Kernel "DotProductAttention": binds attention to the operands of a step.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention_steps.h"

#include <utility>

namespace fuseline::cpu {

namespace {

struct InputBindings {
  InputBindings(const CompileRequest& request, const AttentionProblem& problem)
      : q(findHeads(request, problem, AttentionForm::kQuery)),
        k(findHeads(request, problem, AttentionForm::kKey)),
        v(findHeads(request, problem, AttentionForm::kValue)),
        bias(input(request, problem, problem.form.biasSlot)),
        mask(input(request, problem, problem.form.maskSlot)),
        cuSeqlensQ(input(request, problem, problem.form.cuSeqlensQSlot)),
        cuSeqlensKv(input(request, problem, problem.form.cuSeqlensKvSlot)),
        offset(findAttentionOperand(request, problem, OperandKind::Parameter, AttentionForm::kOffset)) {}

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

  HeadBinding q, k, v;
  Binding bias, mask, cuSeqlensQ, cuSeqlensKv, offset;

 private:
  static Binding input(const CompileRequest& request, const AttentionProblem& problem, int slot) {
    return findAttentionOperand(request, problem, OperandKind::Input, slot);
  }
};

class AttentionForward final : public Kernel {
 public:
  AttentionForward(const CompileRequest& request, AttentionProblem problem)
      : m_problem(std::move(problem)),
        m_inputs(request, m_problem),
        m_y(findAttentionOperand(request, m_problem, OperandKind::Output, 0)),
        m_lse(findAttentionOperand(request, m_problem, OperandKind::Residual, AttentionForm::kLse)) {}

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
        m_inputs(request, m_problem),
        m_gradQ(findHeadGradient(request, m_problem, AttentionForm::kQuery)),
        m_gradK(findHeadGradient(request, m_problem, AttentionForm::kKey)),
        m_gradV(findHeadGradient(request, m_problem, AttentionForm::kValue)),
        m_y(findAttentionOperand(request, m_problem, OperandKind::Output, 0)),
        m_gradY(findAttentionOperand(request, m_problem, OperandKind::GradOutput, 0)),
        m_lse(findAttentionOperand(request, m_problem, OperandKind::Residual, AttentionForm::kLse)),
        m_gradBias(findAttentionOperand(request, m_problem, OperandKind::GradInput, m_problem.form.biasSlot)),
        m_gradOffset(findAttentionOperand(request, m_problem, OperandKind::GradParameter, AttentionForm::kOffset)) {}

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
  HeadBinding m_gradQ, m_gradK, m_gradV;
  Binding m_y, m_gradY, m_lse, m_gradBias, m_gradOffset;
};

}  // namespace

Result<AttentionProblem> attentionProblem(const CompileRequest& request, int attention) {
  Result<fuseline::AttentionProblem> read = fuseline::attentionProblem(request, attention);
  if (!read) return read.error();
  AttentionProblem problem{std::move(*read), request.settings.threads};
  // Rounded probabilities of FP8 attention are no bf16 numbers.
  problem.multipliesBf16 = problem.dtype == DType::BF16 && request.settings.isBf16GemmNative &&
                           !problem.form.probabilityFormat && canMultiplyBf16Tiles();
  return problem;
}

std::unique_ptr<Kernel> makeAttention(const CompileRequest& request, AttentionProblem problem) {
  if (request.step.phase == Phase::Forward) return std::make_unique<AttentionForward>(request, std::move(problem));
  return std::make_unique<AttentionBackward>(request, std::move(problem));
}

namespace kernels {

KernelDef dot_product_attention();

KernelDef dot_product_attention() {
  return {
      .name = "DotProductAttention",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        Result<AttentionProblem> problem = attentionProblem(request);
        if (!problem) return problem.error();
        return makeAttention(request, std::move(*problem));
      },
  };
}

}  // namespace kernels

}  // namespace fuseline::cpu
