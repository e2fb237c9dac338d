// Faults of a GPU: which failures stay, and what is said of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <cuda_runtime_api.h>

namespace fuseline::cuda {

/// The fault of the GPU that is behind a failure, because it stays; cudaSuccess where a call was refused. isCapturing:
/// of the stream, which must not be asked then. query: cudaStreamQuery() of it.
cudaError_t lastingError(bool isCapturing, const std::function<cudaError_t()>& query);

/// "cuda:0 reported a fault: ...". words and name: CUDA's. lastStep: launched last, because a fault surfaces at any
/// call after the launch that it is of.
std::string faultText(int device, const std::string& words, const std::string& name, const std::string& lastStep);

}  // namespace fuseline::cuda
