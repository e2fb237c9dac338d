// Finds the operands of GroupedLinear.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/grouped_linear_step.h"

#include <algorithm>
#include <stdexcept>

namespace fuseline {

using namespace grouped;

namespace {

GroupedForm formOf(const StepRequest& request) { return groupedForm(request.member(0).attributes); }

/// tensor: one with the rows of x.
Result<GroupSizes> bindGroups(const StepRequest& request, const TensorSpec& tensor) {
  const Result<Binding> splitSizes = requireOperand(request, kSplitSizes);
  if (!splitSizes) return splitSizes.error();
  const Attributes& attributes = request.member(0).attributes;
  return GroupSizes{.splitSizes = *splitSizes,
                    .size = {.rows = tensor.rows(),
                             .n = attributes.integer("out_features"),
                             .k = attributes.integer("in_features"),
                             .numGroups = attributes.integer("num_groups")},
                    .areFixed = isSameInEveryRun(request.plan, request.step, splitSizes->index)};
}

}  // namespace

bool isSameInEveryRun(const Plan& plan, const Step& step, int operand) {
  const int tensor = step.operands[static_cast<std::size_t>(operand)].tensor;
  if (plan.tensors[static_cast<std::size_t>(tensor)].role == TensorRole::Input) return true;
  return std::ranges::none_of(plan.steps, [](const Step& other) {
    return other.phase == Phase::Optimizer || other.kernel == "delayed_scaling_update";
  });
}

GroupedOperand::GroupedOperand(const StepRequest& request, OperandKind kind, const GroupedParameter& parameter)
    : m_isSingle(parameter.isSingle) {
  for (int slot = 0; slot < parameter.numSlots; ++slot)
    m_bindings.push_back(findOperand(request, {0, kind, parameter.firstSlot + slot}));
}

Binding GroupedOperand::any() const {
  const auto found = std::ranges::find_if(m_bindings, [](const Binding& binding) { return bool(binding); });
  return found == m_bindings.end() ? Binding{} : *found;
}

std::byte* GroupedOperand::at(Pointers pointers, std::size_t group) const {
  if (m_bindings.empty()) return nullptr;
  if (!m_isSingle) return m_bindings[group].at(pointers);
  const Binding& all = m_bindings.front();
  if (!all) return nullptr;
  const auto partBytes = static_cast<std::size_t>(all.spec.bytes() / all.spec.shape.front());
  return all.at(pointers) + group * partBytes;
}

std::vector<RowGroup> GroupSizes::read(Pointers pointers, const Copy& copy) const {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(size.numGroups));
  copy(sizes.data(), splitSizes.at(pointers), sizes.size() * sizeof(std::int64_t));
  Result<std::vector<RowGroup>> groups = divideRows(sizes, size.rows);
  if (!groups) throw std::runtime_error(groups.error().message);
  return std::move(*groups);
}

ProgramOperands GroupedForwardStep::biasOperands() const {
  return {{kSums, DType::F32}, {kBias, biases.dtype()}, {kScales, scales.spec.dtype}, {kY, y.spec.dtype}};
}

ElementwiseProgram GroupedBackwardStep::biasGradProgram() const {
  return grouped::biasGradProgram(form.isBiasScaled, gradBiases.isPresent(), bool(gradScales));
}

ProgramOperands GroupedBackwardStep::biasGradOperands() const {
  return {{kGradY, gradY.spec.dtype},
          {kScales, scales.spec.dtype},
          {kBias, biases.dtype()},
          {kGradBias, gradBiases.dtype()},
          {kGradScales, gradScales.spec.dtype}};
}

Result<GroupedForwardStep> readGroupedForward(const StepRequest& request) {
  const Result<Binding> x = requireOperand(request, kX);
  if (!x) return x.error();
  const Result<Binding> y = requireOperand(request, kY);
  if (!y) return y.error();
  const Result<GroupSizes> groups = bindGroups(request, x->spec);
  if (!groups) return groups.error();
  const GroupedForm form = formOf(request);
  return GroupedForwardStep{.form = form,
                            .groups = *groups,
                            .x = *x,
                            .scales = findOperand(request, kScales),
                            .y = *y,
                            .weights = {request, OperandKind::Parameter, form.weights},
                            .biases = {request, OperandKind::Parameter, form.biases}};
}

Result<GroupedBackwardStep> readGroupedBackward(const StepRequest& request) {
  const Result<Binding> gradY = requireOperand(request, kGradY);
  if (!gradY) return gradY.error();
  const Result<GroupSizes> groups = bindGroups(request, gradY->spec);
  if (!groups) return groups.error();
  const GroupedForm form = formOf(request);
  return GroupedBackwardStep{.form = form,
                             .groups = *groups,
                             .gradY = findPlainOperand(request, kGradY),
                             .gradYForInput = findOperand(request, kGradY, Usage::Rowwise),
                             .gradYForWeights = findOperand(request, kGradY, Usage::Columnwise),
                             .x = findOperand(request, kX),
                             .scales = findOperand(request, kScales),
                             .gradX = findOperand(request, kGradX),
                             .gradScales = findOperand(request, kGradScales),
                             .weights = {request, OperandKind::Parameter, form.weights},
                             .gradWeights = {request, OperandKind::GradParameter, form.weights},
                             .biases = {request, OperandKind::Parameter, form.biases},
                             .gradBiases = {request, OperandKind::GradParameter, form.biases}};
}

}  // namespace fuseline
