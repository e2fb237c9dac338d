// Grouped GEMMs of cuBLASLt, whose extents and addresses lie in tables on the device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "kernels/cuda/gemm/cublaslt_session.h"
#include "kernels/cuda/gemm/gemm.h"

#include <memory>

namespace fuseline::cuda {

/// problem: of the rows of all groups together. session: must outlive the GEMM. Errors: this version of the library, or
/// this GPU, has none; a sentence. The API is experimental (cublasLt.h of 13.4). Sources of its limits: cuBLAS's
/// release notes from 13.2 on, and the versions that TransformerEngine demands.
Result<std::unique_ptr<GroupedGemm>> prepareGroups(const CublasLtSession& session, const GemmProblem& problem,
                                                   GroupExtent extent, std::size_t numGroups);

}  // namespace fuseline::cuda
