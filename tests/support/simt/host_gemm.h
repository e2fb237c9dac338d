// GEMMs for the SIMT backend, in plain loops: the requests to cuBLASLt, and nothing more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"

#include <memory>

namespace fuseline::testing {

/// hasBlocksOf128: as on Hopper; newer GPUs have none.
std::unique_ptr<cuda::GemmLibrary> makeHostGemms(bool hasBlocksOf128 = true);

}  // namespace fuseline::testing
