// Compiles generated code with NVRTC, NVIDIA's compiler as a library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "kernels/cuda/elementwise/program_compiler.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fuseline::cuda {

/// Is NVRTC there? The sentence says what is missing.
Verdict hasNvrtc();

/// "13.0". Errors: as hasNvrtc().
Result<std::string> nvrtcVersionText();

/// What it compiles for a GPU, "sm_90", see nvrtcTargetFor().
std::string nvrtcTarget(ComputeCapability gpu);

/// A cubin for a target such as "sm_90", or PTX for one such as "compute_90". Needs no GPU. isStrict: code whose
/// variables do not all fit registers is an error. Errors: NVRTC is missing, or its report.
Result<std::vector<char>> compileToCubin(const std::string& source, const std::string& architecture,
                                         bool isStrict = false);

/// All but the source that a cubin depends on: the architecture, NVRTC's version, the device headers.
std::string cubinOrigin(const std::string& architecture);

/// Keeps what it loaded as long as it lives, and what it compiled in this folder for the next run; empty: nowhere.
/// onRefusal: called with each error, for whom programs that are interpreted must not go unnoticed.
std::unique_ptr<ProgramCompiler> makeNvrtcCompiler(std::string architecture, const std::filesystem::path& folder,
                                                   std::function<void(const Error&)> onRefusal);

}  // namespace fuseline::cuda
