// CUDA C++ for an elementwise program: what the interpreter does, as straight code that a compiler can optimise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"

#include <string>

namespace fuseline::cuda {

/// The kernel in generated code.
inline constexpr const char* kGeneratedKernel = "fuselineElementwise";

/// A result that is quantized as it is made, which takes tiles.
struct TiledResult {
  int store = 0;  // of the program
  device::CopyKind kind = device::CopyKind::Tensor;
};

/// `vector` columns a thread; with tiles device::kPatch. Equal programs give equal texts; pointers and the seeds of
/// dropouts are arguments.
std::string sourceOf(const device::Program& program, int vector, const TiledResult* tiles = nullptr);

}  // namespace fuseline::cuda
