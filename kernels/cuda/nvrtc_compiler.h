// Compiles generated code with NVRTC, NVIDIA's compiler as a library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/program_compiler.h"

#include <string>
#include <vector>

namespace fuseline::cuda {

/// Is NVRTC there? The sentence says what is missing.
Verdict hasNvrtc();

/// A cubin for an architecture such as "sm_90a". Needs no GPU. isStrict: code whose variables do not all fit registers
/// is an error. Errors: NVRTC is missing, or its report.
Result<std::vector<char>> compileToCubin(const std::string& source, const std::string& architecture,
                                         bool isStrict = false);

/// Keeps what it compiled as long as it lives. NVRTC is looked for at the first program.
std::unique_ptr<ProgramCompiler> makeNvrtcCompiler(std::string architecture);

}  // namespace fuseline::cuda
