// Faults of a GPU: which failures are persistent, and their messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <cuda_runtime_api.h>

namespace fuseline::cuda {

/// The persistent fault of the GPU that caused a failure; cudaSuccess where a call was refused. isCapturing: the stream
/// is being captured and must not be queried. query: cudaStreamQuery() of it.
cudaError_t lastingError(bool isCapturing, const std::function<cudaError_t()>& query);

/// "cuda:0 reported a fault: ...". words and name: CUDA's. lastStep: launched last, because a fault surfaces at any
/// call after the launch that it is of.
std::string faultText(int device, const std::string& words, const std::string& name, const std::string& lastStep);

}  // namespace fuseline::cuda
