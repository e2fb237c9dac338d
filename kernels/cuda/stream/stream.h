// The CUDA stream's type, without CUDA's headers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

struct CUstream_st;

namespace fuseline::cuda {

/// cudaStream_t and CUstream.
using Stream = CUstream_st*;

}  // namespace fuseline::cuda
