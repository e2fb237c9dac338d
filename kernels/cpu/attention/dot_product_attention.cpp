// Kernel "DotProductAttention": binds attention to the operands of a step.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention_steps.h"
#include "kernels/cpu/step_operand.h"

#include <utility>

namespace fuseline::cpu {

namespace {

/// Heads among the columns of an operand.
struct HeadBinding {
  HeadBinding(const CompileRequest& request, const OperandKey& key, std::int64_t firstElement)
      : whole(findOperand(request, key)), firstByte(firstElement * sizeBytes(whole.spec.dtype)) {}

  std::byte* at(Pointers pointers) const {
    std::byte* const first = whole.at(pointers);
    return first ? first + firstByte : nullptr;
  }

  Binding whole;
  std::int64_t firstByte;
};

HeadBinding inputOf(const CompileRequest& request, const AttentionPlaces& places, std::size_t slot) {
  return {request, places.heads[slot].input, places.heads[slot].firstElement};
}
HeadBinding gradientOf(const CompileRequest& request, const AttentionPlaces& places, std::size_t slot) {
  return {request, places.heads[slot].gradient, places.heads[slot].firstElement};
}

struct InputBindings {
  InputBindings(const CompileRequest& request, const AttentionForm& form, const AttentionPlaces& places)
      : q(inputOf(request, places, AttentionForm::kQuery)),
        k(inputOf(request, places, AttentionForm::kKey)),
        v(inputOf(request, places, AttentionForm::kValue)),
        bias(input(request, places, form.biasSlot)),
        mask(input(request, places, form.maskSlot)),
        cuSeqlensQ(input(request, places, form.cuSeqlensQSlot)),
        cuSeqlensKv(input(request, places, form.cuSeqlensKvSlot)),
        offset(findOperand(request, {places.attention, OperandKind::Parameter, AttentionForm::kOffset})) {}

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
  static Binding input(const CompileRequest& request, const AttentionPlaces& places, int slot) {
    return slot < 0 ? Binding() : findOperand(request, {places.attention, OperandKind::Input, slot});
  }
};

}  // namespace

Result<AttentionProblem> attentionProblem(const CompileRequest& request, int attention) {
  const auto member = static_cast<std::size_t>(attention);
  const Node& node = request.member(member);
  const std::vector<TensorSpec> inputs = request.graph.inputSpecs(request.step.nodes[member]);
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

namespace {

class AttentionForward final : public Kernel {
 public:
  AttentionForward(const CompileRequest& request, AttentionProblem problem, const AttentionPlaces& places)
      : m_problem(std::move(problem)),
        m_inputs(request, m_problem.form, places),
        m_y(findOperand(request, {places.attention, OperandKind::Output, 0})),
        m_lse(findOperand(request, {places.attention, OperandKind::Residual, AttentionForm::kLse})) {}

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
  AttentionBackward(const CompileRequest& request, AttentionProblem problem, const AttentionPlaces& places)
      : m_problem(std::move(problem)),
        m_inputs(request, m_problem.form, places),
        m_gradQ(gradientOf(request, places, AttentionForm::kQuery)),
        m_gradK(gradientOf(request, places, AttentionForm::kKey)),
        m_gradV(gradientOf(request, places, AttentionForm::kValue)),
        m_y(findOperand(request, {places.attention, OperandKind::Output, 0})),
        m_gradY(findOperand(request, {places.attention, OperandKind::GradOutput, 0})),
        m_lse(findOperand(request, {places.attention, OperandKind::Residual, AttentionForm::kLse})),
        m_gradBias(m_problem.form.biasSlot < 0
                       ? Binding()
                       : findOperand(request, {places.attention, OperandKind::GradInput, m_problem.form.biasSlot})),
        m_gradOffset(findOperand(request, {places.attention, OperandKind::GradParameter, AttentionForm::kOffset})) {}

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

std::unique_ptr<Kernel> makeAttention(const CompileRequest& request, AttentionProblem problem,
                                      const AttentionPlaces& places) {
  if (request.step.phase == Phase::Forward)
    return std::make_unique<AttentionForward>(request, std::move(problem), places);
  return std::make_unique<AttentionBackward>(request, std::move(problem), places);
}

namespace kernels {

KernelDef dot_product_attention();

KernelDef dot_product_attention() {
  return {
      .name = "DotProductAttention",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        Result<AttentionProblem> problem = attentionProblem(request, 0);
        if (!problem) return problem.error();
        return makeAttention(request, std::move(*problem), ownPlaces());
      },
  };
}

}  // namespace kernels

}  // namespace fuseline::cpu
