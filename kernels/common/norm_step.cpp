// Finds the operands of norms.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/norm_step.h"

namespace fuseline {

namespace {

NormKind kindOf(const Node& node) {
  if (node.operation->name == "LayerNorm") return NormKind::Layer;
  return node.operation->name == "RMSNorm" ? NormKind::Rms : NormKind::L2;
}

/// x: the normalized tensor.
NormGeometry geometryOf(const Node& node, const TensorSpec& x) {
  const bool hasWeight = !node.parameters.empty();
  const std::int64_t cols = hasWeight ? node.parameters.front().numElements() : x.cols();
  return {.kind = kindOf(node),
          .rows = cols == 0 ? 0 : x.numElements() / cols,
          .cols = cols,
          .x = x.dtype,
          .parameter = hasWeight ? node.parameters.front().dtype : DType::F32,
          .eps = static_cast<float>(node.attributes.real("eps")),
          .isGammaZeroCentred = hasWeight && node.attributes.boolean("zero_centered_gamma")};
}

Binding findMean(const StepRequest& request, int norm) {
  const Node& node = request.member(static_cast<std::size_t>(norm));
  return findOperand(request, {norm, OperandKind::Residual, residualSlot(*node.operation, "mean")});
}

/// The factor of every row is the last residual: rstd, or rnorm.
OperandKey factorKey(const StepRequest& request, int norm) {
  const Node& node = request.member(static_cast<std::size_t>(norm));
  return {norm, OperandKind::Residual, static_cast<int>(node.residuals.size()) - 1};
}

/// Absent where the norm has no weight.
Result<Binding> bindGamma(const StepRequest& request, int norm) {
  if (request.member(static_cast<std::size_t>(norm)).parameters.empty()) return Binding{};
  return requireOperand(request, {norm, OperandKind::Parameter, 0});
}

/// All but the input. x: the normalized tensor.
Result<NormForwardStep> readForward(const StepRequest& request, int norm, const TensorSpec& x) {
  const Result<Binding> gamma = bindGamma(request, norm);
  if (!gamma) return gamma.error();
  const Result<Binding> y = requireResult(request, {norm, OperandKind::Output, 0});
  if (!y) return y.error();
  return NormForwardStep{.norm = geometryOf(request.member(static_cast<std::size_t>(norm)), x),
                         .gamma = *gamma,
                         .beta = findOperand(request, {norm, OperandKind::Parameter, 1}),
                         .y = *y,
                         .mean = findMean(request, norm),
                         .rstd = findOperand(request, factorKey(request, norm))};
}

/// The sum of a residual and x, if it is requested: an output of an op upstream of the norm. The planner makes further
/// outputs views of it.
Binding findSum(const StepRequest& request, int norm) {
  for (int member = 0; member < norm; ++member)
    for (int slot = 0; slot < 2; ++slot)
      if (const Binding sum = findOperand(request, {member, OperandKind::Output, slot})) return sum;
  return {};
}

}  // namespace

Result<NormForwardStep> readNormForward(const StepRequest& request, int norm) {
  const Result<Binding> x = requireOperand(request, {norm, OperandKind::Input, 0});
  if (!x) return x.error();
  Result<NormForwardStep> step = readForward(request, norm, x->spec);
  if (step) step->x = *x;
  return step;
}

Result<NormForwardStep> readAddNormForward(const StepRequest& request) {
  const int norm = static_cast<int>(request.step.nodes.size()) - 1;
  const Result<Binding> left = requireOperand(request, {0, OperandKind::Input, 0});
  if (!left) return left.error();
  const Result<Binding> right = requireOperand(request, {0, OperandKind::Input, 1});
  if (!right) return right.error();
  Result<NormForwardStep> step =
      readForward(request, norm, request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0));
  if (!step) return step;
  step->x = *left;
  step->addend = *right;
  step->sum = findSum(request, norm);
  return step;
}

Result<NormForwardStep> readEmbeddingNormForward(const StepRequest& request) {
  const int norm = static_cast<int>(request.step.nodes.size()) - 1;
  const Result<Binding> ids = requireOperand(request, {0, OperandKind::Input, 0});
  if (!ids) return ids.error();
  const Result<Binding> table = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!table) return table.error();
  Result<NormForwardStep> step =
      readForward(request, norm, request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0));
  if (!step) return step;
  step->x = *table;
  step->ids = *ids;
  step->table = embeddingForm(request.member(0).attributes);
  step->sum = findSum(request, norm);
  return step;
}

NormGradientKeys ownNormGradients() { return {.gradInput = {0, OperandKind::GradInput, 0}, .extraGradient = {-1}}; }

NormGradientKeys branchedNormGradients(const StepRequest& request) {
  const int read = request.graph.value(request.member(1).inputs.front()).port;
  return {.gradInput = {0, OperandKind::GradInput, 0}, .extraGradient = {0, OperandKind::GradOutput, 1 - read}};
}

Result<NormBackwardStep> readNormBackward(const StepRequest& request, int norm, const NormGradientKeys& keys) {
  const Result<Binding> x = requireOperand(request, {norm, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> gamma = bindGamma(request, norm);
  if (!gamma) return gamma.error();
  const Result<Binding> gradOutput = requireOperand(request, {norm, OperandKind::GradOutput, 0});
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> rstd = requireOperand(request, factorKey(request, norm));
  if (!rstd) return rstd.error();
  return NormBackwardStep{.norm = geometryOf(request.member(static_cast<std::size_t>(norm)), x->spec),
                          .x = *x,
                          .gradOutput = *gradOutput,
                          .extra = findOperand(request, keys.extraGradient),
                          .gamma = *gamma,
                          .mean = findMean(request, norm),
                          .rstd = *rstd,
                          .gradInput = findOperand(request, keys.gradInput),
                          .gradGamma = findOperand(request, {norm, OperandKind::GradParameter, 0}),
                          .gradBeta = findOperand(request, {norm, OperandKind::GradParameter, 1})};
}

const Node* normOfSeveralAxes(const KernelQuery& query) {
  for (const NodeId id : query.members) {
    const Node& node = query.graph.node(id);
    const bool isNorm = node.operation->category == "Normalization" && !node.parameters.empty();
    if (isNorm && node.parameters.front().numElements() != query.copies->spec.cols()) return &node;
  }
  return nullptr;
}

}  // namespace fuseline
