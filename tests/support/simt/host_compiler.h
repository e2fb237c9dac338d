// Compiles generated elementwise code with the host's compiler, against the SIMT harness.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/elementwise/program_compiler.h"

#include <memory>

namespace fuseline::testing {

/// Takes about a second a program. Programs that it compiled stay loaded.
std::unique_ptr<cuda::ProgramCompiler> makeHostCompiler();

}  // namespace fuseline::testing
