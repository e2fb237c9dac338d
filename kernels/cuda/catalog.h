// The CUDA kernels of this build, in the order of CMakeLists.txt, and how backends look them up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/kernel_def.h"

#include <string_view>
#include <vector>

namespace fuseline::cuda {

const std::vector<KernelDef>& kernelCatalog();

/// nullptr when there is none.
const KernelDef* findKernel(std::string_view name);

/// Backend::supports of every backend that runs this catalog.
Verdict supportsStep(const KernelQuery& query);

/// Backend::compile of the same. Errors: no kernel, or the kernel refuses.
Result<std::unique_ptr<Kernel>> compileStep(const CompileRequest& request);

}  // namespace fuseline::cuda
