// Matrix products for the SIMT backend, in plain loops: what cuBLASLt is asked for, and nothing more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm.h"

#include <memory>

namespace fuseline::testing {

std::unique_ptr<cuda::GemmLibrary> makeHostGemms();

}  // namespace fuseline::testing
