// Matrix products through cuBLASLt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/algorithm_policy.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/stream/stream.h"

#include <memory>
#include <string>

namespace fuseline::cuda {

/// The library is looked for at the first product, so that pipelines without any run where it is not installed.
/// deviceName: algorithms are kept by it.
std::unique_ptr<GemmLibrary> makeCublasLtGemms(Stream stream, const AlgorithmPolicy& policy,
                                               const std::string& deviceName);

}  // namespace fuseline::cuda
