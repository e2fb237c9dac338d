// Runs graphs with an optimizer several times.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/trained_chain.h"

#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"

#include <functional>
#include <stdexcept>

namespace fuseline::testing {

namespace {

NamedTensors tensorsAfter(const Graph& graph, std::shared_ptr<Backend> backend, int runs, const NamedTensors& given,
                          const std::function<bool(TensorRole)>& isWanted) {
  const Plan plan = makePlan(graph, unfused(graph));
  const Result<NamedTensors> bindings = makeBindings(graph, 1, given);
  if (!bindings) throw std::runtime_error(bindings.error().message);
  const auto executor = Executor::create(std::move(backend), graph, plan, *bindings);
  if (!executor) throw std::runtime_error(executor.error().message);
  for (int run = 0; run < runs; ++run)
    if (const auto outcome = (*executor)->run(); !outcome) throw std::runtime_error(outcome.error().message);
  NamedTensors tensors;
  for (const PlanTensor& tensor : plan.tensors)
    if (isWanted(tensor.role)) tensors.emplace_back(tensor.name, *(*executor)->read(tensor.name));
  return tensors;
}

bool isTrained(TensorRole role) { return role == TensorRole::Parameter || role == TensorRole::OptimizerState; }

}  // namespace

RunResults trainedResults(const Graph& graph, std::shared_ptr<Backend> backend, int runs, const NamedTensors& given) {
  RunResults results;
  const auto isWanted = [](TensorRole role) { return isTrained(role) || isResult(role); };
  for (const auto& [name, tensor] : tensorsAfter(graph, std::move(backend), runs, given, isWanted))
    results[name] = tensor.toDoubles();
  return results;
}

NamedTensors trainedState(const Graph& graph, std::shared_ptr<Backend> backend, int runs, const NamedTensors& given) {
  return tensorsAfter(graph, std::move(backend), runs, given, isTrained);
}

}  // namespace fuseline::testing
