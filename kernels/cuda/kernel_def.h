// KernelDef: one CUDA kernel as data: its name, what it supports, and how a step becomes a Kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/runtime/backend.h"
#include "core/runtime/step_operand.h"
#include "core/support/result.h"
#include "kernels/cuda/elementwise/program_compiler.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/stream/stream.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fuseline::cuda {

class GraphLibrary;
class Lanes;

/// What every kernel of one backend shares. Must outlive them.
struct DeviceContext {
  Stream stream = nullptr;
  Lanes* lanes = nullptr;  // null: there is only the stream
  int numMultiprocessors = 1;
  ComputeCapability capability = {};  // 0.0: not known
  /// What a block may have of shared memory: 99 KB, 163 KB or 227 KB.
  std::size_t maxSharedBytes = std::size_t{227} << 10U;
  /// What a step may have of scores of attention at a time, in float32; beside them are their probabilities. It bounds
  /// the workspace, and is enough to keep a GPU busy.
  std::size_t maxScoreBytes = std::size_t{256} << 20U;
  GemmLibrary* gemms = nullptr;
  GraphLibrary* graphs = nullptr;       // of attention; null: there is none
  ProgramCompiler* programs = nullptr;  // null: elementwise programs are interpreted
  /// Waits for what was launched, and copies. Throws while launches are recorded.
  std::function<void(void* host, const std::byte* device, std::size_t sizeBytes)> readBack;
};

/// Everything that compile may look at. Only valid during the call, but for the device.
struct CompileRequest : StepRequest {
  const DeviceContext& device;
};

struct KernelDef {
  std::string name;
  std::vector<Phase> phases;
  /// Asked with members in forward order. Names in the sentence what is missing.
  std::function<Verdict(const KernelQuery&)> supports;
  /// May assume that supports() said yes. Errors: operands that the plan does not give.
  std::function<Result<std::unique_ptr<Kernel>>(const CompileRequest&)> compile;
  /// The same for a query with copies, where supports() said yes. Empty: it never writes any.
  std::function<Verdict(const KernelQuery&)> supportsCopies = {};
};

}  // namespace fuseline::cuda
