// KernelDef: one CUDA kernel as data: its name, its support, and how a step becomes a Kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/runtime/backend.h"
#include "core/runtime/step_operand.h"
#include "core/support/result.h"
#include "kernels/common/kernel_catalog.h"
#include "kernels/cuda/elementwise/program_compiler.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/stream/stream.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fuseline::cuda {

class AmaxesByPlan;
class GraphLibrary;
class Lanes;

/// Shared by all kernels of one backend. Must outlive them.
struct DeviceContext {
  Stream stream = nullptr;
  Lanes* lanes = nullptr;  // null: there is only the stream
  int numMultiprocessors = 1;
  ComputeCapability capability = {};  // 0.0: not known
  /// Maximum shared memory of a block: 99 KB, 163 KB or 227 KB.
  std::size_t maxSharedBytes = std::size_t{227} << 10U;
  /// Largest size of the attention scores of a step at a time, in float32; beside them are their probabilities. It
  /// bounds the workspace, and is enough to keep a GPU busy.
  std::size_t maxScoreBytes = std::size_t{256} << 20U;
  GemmLibrary* gemms = nullptr;
  StepTimer* timer = nullptr;           // null: nothing is timed
  GraphLibrary* graphs = nullptr;       // of attention; null: there is none
  ProgramCompiler* programs = nullptr;  // null: elementwise programs are interpreted
  /// Waits for all launches, then copies. Throws during capture.
  std::function<void(void* host, const std::byte* device, std::size_t sizeBytes)> readBack;
  /// For values that outlive a step. Throws if there is no memory.
  std::function<std::unique_ptr<DeviceMemory>(std::size_t sizeBytes)> allocate;
  AmaxesByPlan* amaxes = nullptr;
};

/// Context of compile. Only valid during the call, except for the device.
struct CompileRequest : StepRequest {
  const DeviceContext& device;
};

struct KernelDef {
  std::string name;
  std::vector<Phase> phases;
  /// Called with members in forward order. The verdict names the missing feature.
  std::function<Verdict(const KernelQuery&)> supports = alwaysSupported;
  /// Precondition: supports() returned yes. Errors: operands that the plan does not have.
  std::function<Result<std::unique_ptr<Kernel>>(const CompileRequest&)> compile;
  /// The same for a query with copies; precondition: supports() returned yes. Empty: it never quantizes.
  std::function<Verdict(const KernelQuery&)> supportsCopies = {};
};

}  // namespace fuseline::cuda
