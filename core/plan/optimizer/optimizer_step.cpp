// Adds the optimizer's tensors and its steps to a plan.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/optimizer/optimizer_step.h"

#include "core/plan/collectives/collective_steps.h"

#include <utility>

namespace fuseline {

namespace {

/// Moments 3 and 4, the decay 1, the update 6; what follows from the options and the counter alone does not count.
constexpr std::int64_t kFlopsPerElement = 14;
/// A square, and its sum.
constexpr std::int64_t kFlopsPerSquare = 2;

using TrainedParameters = std::vector<TrainedParameter>;

StepOperand gradientOf(const TrainedParameter& parameter, int member, const PlanTensors& tensors) {
  return {.key = {member, OperandKind::GradParameter, 0},
          .tensor = tensors.find({PlanTensorSource::ParameterGradient, parameter.node, parameter.slot})};
}

void addParameter(const TrainedParameter& parameter, int member, PlanTensors& tensors, Step& step) {
  // A parameter with a float32 copy is not read.
  const OperandAccess update = parameter.hasMaster() ? OperandAccess::Write : OperandAccess::Accumulate;
  step.operands.push_back({.key = {member, OperandKind::Parameter, 0},
                           .tensor = tensors.find({PlanTensorSource::Parameter, parameter.node, parameter.slot}),
                           .access = update});
  step.operands.push_back(gradientOf(parameter, member, tensors));
  if (parameter.isGradientAdded) step.operands.back().access = OperandAccess::Accumulate;
  int slot = 0;
  for (std::string& name : parameter.stateNames())
    step.operands.push_back({.key = {member, OperandKind::Residual, slot++},
                             .tensor = tensors.add(std::move(name), parameter.stateSpec(), TensorRole::OptimizerState),
                             .access = OperandAccess::Accumulate});
  step.flops += kFlopsPerElement * parameter.spec.numElements();
}

Step updateStep(const TrainedParameters& parameters, PlanTensors& tensors) {
  Step step{.name = "AdamW", .kernel = kAdamWKernel, .phase = Phase::Optimizer};
  step.operands.push_back(
      {.key = {0, OperandKind::Input, 0},
       .tensor = tensors.add(std::string(kOptimizerStep), optimizerStepSpec(), TensorRole::OptimizerState),
       .access = OperandAccess::Accumulate});
  for (std::size_t i = 0; i < parameters.size(); ++i) addParameter(parameters[i], static_cast<int>(i), tensors, step);
  return step;
}

Step normStep(const TrainedParameters& parameters, PlanTensors& tensors) {
  Step step{.name = "grad_norm", .kernel = kGradNormKernel, .phase = Phase::Optimizer};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    step.operands.push_back(gradientOf(parameters[i], static_cast<int>(i), tensors));
    step.flops += kFlopsPerSquare * parameters[i].spec.numElements();
  }
  step.operands.push_back(
      {.key = {0, OperandKind::Output, 0},
       .tensor = tensors.add(std::string(kGradientSquares), gradientSquaresSpec(), TensorRole::Intermediate),
       .access = OperandAccess::Write});
  tensors.countBytes(step);
  return step;
}

}  // namespace

std::vector<Step> optimizerSteps(const Graph& graph, PlanTensors& tensors) {
  const TrainedParameters parameters = trainedParameters(graph);
  if (parameters.empty()) return {};
  std::vector<Step> steps;
  Step update = updateStep(parameters, tensors);
  if (graph.optimizer()->clipsGradients()) {
    steps.push_back(normStep(parameters, tensors));
    const int squares = steps.back().operands.back().tensor;
    if (isOfSeveralRanks(graph)) steps.push_back(sumOfShards("grad_norm.shards", Phase::Optimizer, squares, tensors));
    update.operands.push_back({.key = {0, OperandKind::Input, 1}, .tensor = squares});
  }
  tensors.countBytes(update);
  steps.push_back(std::move(update));
  return steps;
}

}  // namespace fuseline
