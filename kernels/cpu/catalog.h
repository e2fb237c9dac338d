// The CPU kernels of this build, in the order of CMakeLists.txt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/kernel_def.h"

#include <string_view>
#include <vector>

namespace fuseline::cpu {

const std::vector<KernelDef>& kernelCatalog();

/// nullptr when there is none.
const KernelDef* findKernel(std::string_view name);

}  // namespace fuseline::cpu
