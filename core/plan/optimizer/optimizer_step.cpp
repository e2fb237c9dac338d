// Adds the optimizer's tensors and its step to a plan.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/optimizer/optimizer_step.h"

namespace fuseline {

namespace {

/// Moments 3 and 4, the decay 1, the update 6; what follows from the options and the counter alone does not count.
constexpr std::int64_t kFlopsPerElement = 14;

void addParameter(const TrainedParameter& parameter, int member, PlanTensors& tensors, Step& step) {
  const OperandAccess gradient = parameter.isGradientAdded ? OperandAccess::Accumulate : OperandAccess::Read;
  // A parameter with a float32 copy is not read.
  const OperandAccess update = parameter.hasMaster() ? OperandAccess::Write : OperandAccess::Accumulate;
  step.operands.push_back({.key = {member, OperandKind::Parameter, 0},
                           .tensor = tensors.find({PlanTensorSource::Parameter, parameter.node, parameter.slot}),
                           .access = update});
  step.operands.push_back(
      {.key = {member, OperandKind::GradParameter, 0},
       .tensor = tensors.find({PlanTensorSource::ParameterGradient, parameter.node, parameter.slot}),
       .access = gradient});
  int slot = 0;
  for (std::string& name : parameter.stateNames())
    step.operands.push_back({.key = {member, OperandKind::Residual, slot++},
                             .tensor = tensors.add(std::move(name), parameter.stateSpec(), TensorRole::OptimizerState),
                             .access = OperandAccess::Accumulate});
  step.flops += kFlopsPerElement * parameter.spec.numElements();
}

}  // namespace

std::optional<Step> optimizerStep(const Graph& graph, PlanTensors& tensors) {
  const std::vector<TrainedParameter> parameters = trainedParameters(graph);
  if (parameters.empty()) return std::nullopt;
  Step step{.name = "AdamW", .kernel = kAdamWKernel, .phase = Phase::Backward};
  step.operands.push_back(
      {.key = {0, OperandKind::Input, 0},
       .tensor = tensors.add(std::string(kOptimizerStep), optimizerStepSpec(), TensorRole::OptimizerState),
       .access = OperandAccess::Accumulate});
  for (std::size_t i = 0; i < parameters.size(); ++i) addParameter(parameters[i], static_cast<int>(i), tensors, step);
  tensors.countBytes(step);
  return step;
}

}  // namespace fuseline
