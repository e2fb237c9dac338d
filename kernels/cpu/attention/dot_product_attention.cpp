// Kernel "DotProductAttention": binds attention to the operands of a step.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/step_operand.h"

#include <utility>

namespace fuseline::cpu::kernels {

namespace {

struct InputBindings {
  InputBindings(const CompileRequest& request, const AttentionForm& form)
      : q(input(request, AttentionForm::kQuery)),
        k(input(request, AttentionForm::kKey)),
        v(input(request, AttentionForm::kValue)),
        bias(input(request, form.biasSlot)),
        mask(input(request, form.maskSlot)),
        cuSeqlensQ(input(request, form.cuSeqlensQSlot)),
        cuSeqlensKv(input(request, form.cuSeqlensKvSlot)),
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

 private:
  static Binding input(const CompileRequest& request, int slot) {
    return slot < 0 ? Binding() : findOperand(request, {0, OperandKind::Input, slot});
  }
};

/// Of the node's own tensors, which may be other than those of the step.
Result<AttentionProblem> problemOf(const CompileRequest& request) {
  const Node& node = request.member(0);
  const std::vector<TensorSpec> inputs = request.graph.inputSpecs(request.step.nodes.front());
  const auto shapeAt = [&](int slot) { return slot < 0 ? Shape() : inputs[static_cast<std::size_t>(slot)].shape; };
  AttentionProblem problem{.form = attentionForm(node.attributes),
                           .dtype = inputs[AttentionForm::kQuery].dtype,
                           .threads = request.settings.threads};
  const Shape shapes[] = {shapeAt(AttentionForm::kQuery), shapeAt(AttentionForm::kKey), shapeAt(AttentionForm::kValue)};
  Result<AttentionLayouts> layouts = attentionLayouts(problem.form, shapes);
  if (!layouts) return layouts.error();
  problem.layouts = *layouts;
  problem.biasShape = shapeAt(problem.form.biasSlot);
  problem.maskShape = shapeAt(problem.form.maskSlot);
  if (problem.form.hasBias()) problem.biasDType = inputs[static_cast<std::size_t>(problem.form.biasSlot)].dtype;
  problem.numSequences = problem.form.cuSeqlensQSlot < 0
                             ? layouts->q.batch
                             : numSequences(inputs[static_cast<std::size_t>(problem.form.cuSeqlensQSlot)]);
  return problem;
}

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
        m_gradQ(gradient(request, AttentionForm::kQuery)),
        m_gradK(gradient(request, AttentionForm::kKey)),
        m_gradV(gradient(request, AttentionForm::kValue)),
        m_gradBias(gradient(request, m_problem.form.biasSlot)),
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
  static Binding gradient(const CompileRequest& request, int slot) {
    return slot < 0 ? Binding() : findOperand(request, {0, OperandKind::GradInput, slot});
  }

  AttentionProblem m_problem;
  InputBindings m_inputs;
  Binding m_y, m_gradY, m_lse, m_gradQ, m_gradK, m_gradV, m_gradBias, m_gradOffset;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<AttentionProblem> problem = problemOf(request);
  if (!problem) return problem.error();
  if (request.step.phase == Phase::Forward)
    return std::unique_ptr<Kernel>(std::make_unique<AttentionForward>(request, std::move(*problem)));
  return std::unique_ptr<Kernel>(std::make_unique<AttentionBackward>(request, std::move(*problem)));
}

}  // namespace

KernelDef dot_product_attention();

KernelDef dot_product_attention() {
  return {
      .name = "DotProductAttention",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = compile,
  };
}

}  // namespace fuseline::cpu::kernels
