// GEMMs through cuBLASLt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/algorithm_policy.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/stream/stream.h"

#include <memory>
#include <string>

namespace fuseline::cuda {

/// The library is opened at the first GEMM, so that pipelines without GEMMs run if it is not installed. deviceName: key
/// of kept algorithms.
std::unique_ptr<GemmLibrary> makeCublasLtGemms(Stream stream, const AlgorithmPolicy& policy,
                                               const std::string& deviceName);

}  // namespace fuseline::cuda
