// CUDA C++ for an elementwise program: the interpreter's computation as straight-line code that a compiler can
// optimize.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/elementwise/elementwise_launch.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline::cuda {

/// The kernel in generated code.
inline constexpr const char* kGeneratedKernel = "fuselineElementwise";

/// A result with fused quantization, which needs tiles, or with an amax; or an input with an amax.
struct HandedResult {
  std::vector<int> stores;  // of the program, by lane of the result; a quantized lane is in one piece
  std::optional<device::CopyKind> kind = std::nullopt;  // none: only the amax is requested
  bool isWritten = true;                                // the result itself is written, too
  bool isUnrounded = false;                             // the amax is that of float32, not of the stored result
  std::vector<int> loads = {};                          // operands of the input, in place of stores
};

/// shape: its columns of a thread; with tiles device::kPatch. Equal programs have equal texts; pointers and the seeds
/// of dropouts are arguments.
std::string sourceOf(const device::Program& program, const ElementwiseShape& shape,
                     const HandedResult* handed = nullptr);

}  // namespace fuseline::cuda
