// CUDA C++ for an elementwise program: what the interpreter does, as straight code that a compiler can optimise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"

#include <string>
#include <vector>

namespace fuseline::cuda {

/// The kernel in generated code.
inline constexpr const char* kGeneratedKernel = "fuselineElementwise";

/// A result that is quantized as it is made, which takes tiles.
struct TiledResult {
  std::vector<int> stores;  // of the program, by lane of the result; a lane is in one piece
  device::CopyKind kind = device::CopyKind::Tensor;
  bool isWritten = false;  // the result itself, too
};

/// `vector` columns a thread; with tiles device::kPatch. Equal programs give equal texts; pointers and the seeds of
/// dropouts are arguments.
std::string sourceOf(const device::Program& program, int vector, const TiledResult* tiles = nullptr);

}  // namespace fuseline::cuda
