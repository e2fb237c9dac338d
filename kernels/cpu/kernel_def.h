// KernelDef: one CPU kernel as data: its name, its support, and how a step becomes a Kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/runtime/step_operand.h"
#include "core/support/result.h"
#include "kernels/common/kernel_catalog.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fuseline::cpu {

/// Shared by all kernels of one backend.
struct CpuSettings {
  int threads = 1;
  bool isBf16GemmNative = false;
};

/// Context of compile. Only valid during the call.
struct CompileRequest : StepRequest {
  const CpuSettings& settings;
};

struct KernelDef {
  std::string name;
  std::vector<Phase> phases;
  /// Called with members in forward order. The verdict names the missing feature.
  std::function<Verdict(const KernelQuery&)> supports = alwaysSupported;
  /// Precondition: supports() returned yes. Errors: operands that the plan does not have.
  std::function<Result<std::unique_ptr<Kernel>>(const CompileRequest&)> compile;
  /// Can it also quantize its result?
  bool writesCopies = false;
  /// The same of gradients, if it writes copies.
  bool writesGradientCopies = true;
  /// Does it read quantized operands as they are? Otherwise it gets their numbers.
  bool readsCodes = false;
  /// Otherwise: can it multiply the encoded values of a constant weight?
  bool multipliesCodes = false;
};

}  // namespace fuseline::cpu
