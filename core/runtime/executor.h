// Executor: binds a plan to a backend and runs it. Memory is one block, laid out by the plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/tensor/tensor.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Called after each step that is launched (not for views) with its index in Plan::steps and the host time of the
/// step, its synchronization included.
using StepObserver = std::function<void(std::size_t step, double durationNs)>;

/// Memory of the caller's, on the device, that a result is written to as it is computed; nothing is copied.
struct ResultBuffer {
  std::string tensor;  // an output or a gradient: "y", "grad.x", "grad.fc1.weight"
  TensorSpec spec;
  std::byte* data = nullptr;
};

enum class RunOutcome { Completed, Cancelled };

class Executor {
 public:
  /// Compiles every step, allocates the plan's memory and uploads the bindings: a tensor for every input, parameter
  /// and output gradient of the plan, by name. `graph` and `plan` must outlive the executor.
  /// Results live in `buffers` where there is one for them, which must outlive the executor; such a tensor shares it
  /// with all that is a view of it, as it would share the plan's own memory.
  /// Errors: a step without a kernel, a missing or misshapen binding, no memory, a buffer that no result fits; each
  /// with the name.
  static Result<std::unique_ptr<Executor>> create(std::shared_ptr<Backend> backend, const Graph& graph,
                                                  const Plan& plan, const NamedTensors& bindings,
                                                  std::span<const ResultBuffer> buffers = {});

  /// Runs all steps in order and waits for the device. Stops between steps when `cancel` asks for it.
  /// Errors (RunFailed): what a kernel threw, with the step's name.
  Result<RunOutcome> run(std::stop_token cancel = {});
  /// The same, waiting after every step to time it.
  Result<RunOutcome> runObserved(const StepObserver& observer, std::stop_token cancel = {});

  /// Copies a tensor of the plan to the host. Tensors of the arena are only meaningful if the plan was made with
  /// keepIntermediates. Errors: no tensor of this name (with the nearest one).
  Result<Tensor> read(std::string_view tensorName) const;

  const Plan& plan() const { return m_plan; }

 private:
  /// A step that is launched, with its operands resolved.
  struct Launch {
    std::size_t step = 0;
    std::unique_ptr<Kernel> kernel;
    std::vector<std::byte*> operands;
  };

  Executor(std::shared_ptr<Backend> backend, const Graph& graph, const Plan& plan);
  Result<void> place(std::span<const ResultBuffer> buffers);
  Result<void> compile();
  Result<void> allocate();
  Result<void> upload(const NamedTensors& bindings);
  void resolveOperands();
  /// What `runsOnce`.
  Result<void> runOnce();
  /// nullptr for an empty tensor.
  std::byte* address(int tensor) const;
  Result<void> launch(Launch& launch);
  Result<RunOutcome> cancelled();

  std::shared_ptr<Backend> m_backend;
  const Graph& m_graph;
  const Plan& m_plan;
  std::vector<Launch> m_launches;
  std::map<int, std::byte*> m_given;  // by storage: memory of the caller's
  std::unique_ptr<DeviceMemory> m_memory;
  std::unique_ptr<DeviceMemory> m_workspace;
};

/// Does the caller bind this tensor before a run?
bool isBound(TensorRole role);
/// Is this tensor what a run is for? The caller may give memory for it.
bool isResult(TensorRole role);

/// "fc1.linear (BasicLinear, forward)": how messages name a step.
std::string describe(const Step& step);

}  // namespace fuseline
