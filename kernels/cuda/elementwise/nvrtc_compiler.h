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

/// Is NVRTC available? The verdict names the missing part.
Verdict hasNvrtc();

/// "13.0". Errors: as hasNvrtc().
Result<std::string> nvrtcVersionText();

/// NVRTC's target for a GPU, "sm_90", see nvrtcTargetFor().
std::string nvrtcTarget(ComputeCapability gpu);

/// Compiles to a cubin for a target such as "sm_90", or to PTX for one such as "compute_90". Needs no GPU. isStrict:
/// code that spills registers is an error. Errors: NVRTC is missing, or its report.
Result<std::vector<char>> compileToCubin(const std::string& source, const std::string& architecture,
                                         bool isStrict = false);

/// All but the source that a cubin depends on: the architecture, NVRTC's version, the device headers.
std::string cubinOrigin(const std::string& architecture);

/// The same for a program of the bundle, which is used with any version of NVRTC, and without it.
std::string bundledOrigin(const std::string& architecture);

/// Where this module has programs that were compiled beforehand, if it has them: the folder "programs" next to it.
std::filesystem::path bundledPrograms();

/// A compiler that can compile several programs at once.
class PreparingCompiler : public ProgramCompiler {
 public:
  /// Compiles the programs that are not kept yet, on several threads. Those that fail are reported by compile().
  virtual void prepare(const std::vector<std::string>& sources) = 0;
};

/// Empty: there is none.
struct ProgramFolders {
  std::filesystem::path kept;  // compiled programs are kept there for the next run
  std::filesystem::path bundled = bundledPrograms();
};

/// Keeps loaded programs for its lifetime. Programs of the bundle are not compiled.
/// onRefusal: called with each error, for callers that must not miss a fallback to the interpreter.
std::unique_ptr<PreparingCompiler> makeNvrtcCompiler(std::string architecture, const ProgramFolders& folders,
                                                     std::function<void(const Error&)> onRefusal);

}  // namespace fuseline::cuda
