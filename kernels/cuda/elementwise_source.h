// CUDA C++ for an elementwise program: what the interpreter does, as straight code that a compiler can optimise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"

#include <string>

namespace fuseline::cuda {

/// The kernel in generated code.
inline constexpr const char* kGeneratedKernel = "fuselineElementwise";

/// `vector` columns a thread. Equal programs give equal texts; pointers and the seeds of dropouts are arguments.
std::string sourceOf(const device::Program& program, int vector);

}  // namespace fuseline::cuda
