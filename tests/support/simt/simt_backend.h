// A backend that runs the CUDA kernels on the SIMT harness: their own sources, on the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/runtime/backend.h"
#include "kernels/cuda/elementwise/program_compiler.h"

#include <memory>

namespace fuseline::testing {

/// programs: compiles elementwise programs, and must outlive the backend; null: they are interpreted. capability:
/// determines its GEMMs; 0.0: those of all GPUs. numMultiprocessors: kernels choose their blocks by it.
std::shared_ptr<Backend> makeSimtBackend(cuda::ProgramCompiler* programs = nullptr, ComputeCapability capability = {},
                                         int numMultiprocessors = 2);

}  // namespace fuseline::testing
