// The memory of a plan on a device: one block, laid out by the plan, and buffers of the caller's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/tensor/tensor.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fuseline {

/// Memory of the caller's, on the device, that a result is written to as it is computed; nothing is copied.
struct ResultBuffer {
  std::string tensor;  // an output or a gradient: "y", "grad.x", "grad.fc1.weight"
  TensorSpec spec;
  std::byte* data = nullptr;
};

/// Does the caller bind this tensor before a run?
bool isBound(TensorRole role);
/// Is this tensor what a run is for? The caller may give memory for it.
bool isResult(TensorRole role);

class PlanMemory {
 public:
  /// Both outlive it.
  PlanMemory(Backend& backend, const Plan& plan) : m_backend(backend), m_plan(plan) {}

  /// Results live in these buffers, which outlive it. Errors: a buffer that no result fits, two for the same memory.
  Result<void> place(std::span<const ResultBuffer> buffers);
  /// workspaceBytes: what kernels need beside it, which is asked for elsewhere. Errors: the device has less than both.
  Result<void> allocate(std::size_t workspaceBytes);
  /// Copies a tensor for every input, parameter and output gradient to the device. Errors: one is missing or misshapen.
  Result<void> upload(const NamedTensors& bindings);
  /// Copies the parameters, main_grad buffers and the optimizer's state again if the plan has an optimizer.
  Result<void> restoreParameters(const NamedTensors& bindings);
  /// nullptr for an empty tensor.
  std::byte* address(int tensor) const;
  /// Copies a tensor of the plan to the host. Errors: no tensor of this name (with the nearest one).
  Result<Tensor> read(std::string_view tensorName) const;

 private:
  Result<void> checkFree(std::size_t workspaceBytes) const;
  Result<void> uploadRoles(const NamedTensors& bindings, bool (*isWanted)(TensorRole));

  Backend& m_backend;
  const Plan& m_plan;
  std::map<int, std::byte*> m_given;  // by storage: memory of the caller's
  std::unique_ptr<DeviceMemory> m_memory;
  std::unique_ptr<DeviceMemory> m_hostMemory;  // of tensors that wait there; may be absent
};

}  // namespace fuseline
