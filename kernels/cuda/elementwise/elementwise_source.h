// CUDA C++ for an elementwise program: what the interpreter does, as straight code that a compiler can optimise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline::cuda {

/// The kernel in generated code.
inline constexpr const char* kGeneratedKernel = "fuselineElementwise";

/// A result that is quantized as it is made, which takes tiles; or whose amax is found.
struct HandedResult {
  std::vector<int> stores;  // of the program, by lane of the result; a lane that is quantized is in one piece
  std::optional<device::CopyKind> kind = std::nullopt;  // none: only the amax is wanted
  bool isWritten = true;                                // the result itself, too
  bool isUnrounded = false;                             // the amax is that of float32, not of what is stored of it
};

/// `vector` columns a thread; with tiles device::kPatch. Equal programs give equal texts; pointers and the seeds of
/// dropouts are arguments.
std::string sourceOf(const device::Program& program, int vector, const HandedResult* handed = nullptr);

}  // namespace fuseline::cuda
