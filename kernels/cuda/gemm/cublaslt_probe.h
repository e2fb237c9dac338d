// GEMMs for which cuBLASLt has algorithms: the library's own answers, kind by kind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "kernels/cuda/gemm/cublaslt_session.h"

#include <vector>

namespace fuseline::cuda {

/// Asks the heuristic about large GEMMs with every epilogue of every combination of formats. Nothing is launched.
/// Throws DeviceFault.
std::vector<ProductSupport> probeProducts(const CublasLtSession& session);

}  // namespace fuseline::cuda
