// Settings of AdamW by the names of torch.optim, and the programs of resources/torch that read them.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/torch/torch_optimizer.h"

#include "core/export/te/python_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kOptimizer =
#include "core/export/torch_optimizer.inc"
    ;
constexpr const char* kTraining =
#include "core/export/torch_training.inc"
    ;

/// Where roundings of 16 bits differ, trainings part after a few steps.
double updateTolerance(const Graph& graph) {
  const bool isFloat32 = std::ranges::all_of(
      graph.values(), [](const Value& value) { return !isFloat(value.spec.dtype) || value.spec.dtype == DType::F32; });
  return isFloat32 ? 1e-2 : 0.5;
}

}  // namespace

std::string optimizerClass(const Graph& graph) {
  if (!graph.optimizer()) return {};
  const AdamW& adamw = *graph.optimizer();
  return fmt::format(
      "ADAMW = {{\"lr\": {}, \"betas\": ({}, {}), \"eps\": {}, \"weight_decay\": {}}}\nMAX_GRAD_NORM = {}\n"
      "SCHEDULE, WARMUP_STEPS, TRAINING_STEPS = {}, {}, {}\n\n\n{}\n\n",
      pythonNumber(adamw.lr), pythonNumber(adamw.beta1), pythonNumber(adamw.beta2), pythonNumber(adamw.eps),
      pythonNumber(adamw.weightDecay), pythonNumber(adamw.maxGradNorm), pythonText(nameOf(adamw.schedule)),
      adamw.warmupSteps, adamw.trainingSteps, kOptimizer);
}

std::string trainingProgram(const Graph& graph) {
  const bool hasOptimizer = graph.optimizer().has_value();
  const std::string program = hasOptimizer ? kTraining : "Optimizer = compare_training = None\n";
  return fmt::format("HAS_OPTIMIZER = {}\nUPDATE_TOLERANCE = {}\n{}{}", pythonBool(hasOptimizer),
                     pythonNumber(updateTolerance(graph)), hasOptimizer ? "\n\n" : "", program);
}

}  // namespace fuseline
