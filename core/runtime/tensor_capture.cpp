// Reads tensors between the steps of a run.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/tensor_capture.h"

#include "core/quant/copy_memory.h"
#include "core/runtime/executor.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

Error captureCancelled() { return {"The capture was cancelled.", ErrorKind::RunFailed}; }

template <class Predicate>
std::optional<std::size_t> lastWriterWhere(const Plan& plan, const Predicate& isWanted) {
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (const StepOperand& operand : plan.steps[i].operands) {
      const bool isWritten = operand.access != OperandAccess::Read && plan.steps[i].isLaunched();
      if (isWritten && isWanted(plan.tensors[static_cast<std::size_t>(operand.tensor)])) last = i;
    }
  return last;
}

/// The last writer among the steps of every run; nothing if the tensor is given, or produced once. If the tensor shares
/// its memory with views of columns, writes of these do not count.
std::optional<std::size_t> lastWriter(const Plan& plan, int tensor) {
  const PlanTensor& wanted = plan.tensors[static_cast<std::size_t>(tensor)];
  const auto shares = [&](const PlanTensor& other) { return other.storage == wanted.storage; };
  const auto own =
      lastWriterWhere(plan, [&](const PlanTensor& other) { return shares(other) && other.columns == wanted.columns; });
  return own ? own : lastWriterWhere(plan, shares);
}

Tensor withoutCodes(Tensor tensor) {
  if (!tensor.spec.quantized) return tensor;
  TensorSpec plain = tensor.spec;
  plain.quantized.reset();
  return Tensor::fromDoubles(std::move(plain), dequantizedValues(tensor.spec, tensor.data.data()));
}

class TensorCapture {
 public:
  TensorCapture(Executor& executor, std::span<const std::string> names) : m_executor(executor), m_names(names) {}

  /// Errors: the plan has no such tensor.
  Result<void> plan() {
    m_tensors.resize(m_names.size());
    for (std::size_t i = 0; i < m_names.size(); ++i) {
      const int tensor = m_executor.plan().findTensor(m_names[i]);
      if (tensor < 0) return Error{fmt::format("{}: the plan has no tensor of this name.", m_names[i])};
      const auto writer = lastWriter(m_executor.plan(), tensor);
      writer ? m_afterStep[*writer].push_back(i) : m_afterRun.push_back(i);
    }
    return {};
  }

  Result<NamedTensors> run(const std::stop_token& cancel) {
    const Result<RunOutcome> outcome =
        m_executor.runObserved([this](std::size_t step, double, double) { readAfter(step); }, cancel);
    if (!outcome) return outcome.error();
    if (*outcome == RunOutcome::Cancelled) return captureCancelled();
    for (const std::size_t i : m_afterRun) read(i);
    if (m_problem) return *m_problem;
    NamedTensors tensors;
    for (std::size_t i = 0; i < m_names.size(); ++i) tensors.emplace_back(m_names[i], std::move(m_tensors[i]));
    return tensors;
  }

 private:
  void readAfter(std::size_t step) {
    const auto due = m_afterStep.find(step);
    if (due == m_afterStep.end()) return;
    for (const std::size_t i : due->second) read(i);
  }

  void read(std::size_t i) {
    if (m_problem) return;
    Result<Tensor> tensor = m_executor.read(m_names[i]);
    if (!tensor) m_problem = tensor.error();
    if (tensor) m_tensors[i] = withoutCodes(std::move(*tensor));
  }

  Executor& m_executor;
  std::span<const std::string> m_names;
  std::map<std::size_t, std::vector<std::size_t>> m_afterStep;  // tensors to read after each step, as indices of names
  std::vector<std::size_t> m_afterRun;
  std::vector<Tensor> m_tensors;
  std::optional<Error> m_problem;
};

}  // namespace

Result<NamedTensors> captureTensors(const CaptureRequest& request, const std::stop_token& cancel) {
  // The host's clock: the device has ended a step before the next one is launched.
  Result<std::unique_ptr<Executor>> executor =
      Executor::create(request.backend, request.graph, request.plan, request.bindings, {}, {.clock = StepClock::Host});
  if (!executor) return executor.error();
  TensorCapture capture(**executor, request.tensors);
  if (Result<void> planned = capture.plan(); !planned) return planned.error();
  for (int done = 0; done < request.warmup; ++done) {
    const Result<RunOutcome> outcome = (*executor)->run(cancel);
    if (!outcome) return outcome.error();
    if (*outcome == RunOutcome::Cancelled) return captureCancelled();
  }
  if (Result<void> restored = (*executor)->restoreParameters(request.bindings); !restored) return restored.error();
  return capture.run(cancel);
}

}  // namespace fuseline
