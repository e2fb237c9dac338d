// A stream with an owner.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/stream.h"
#include "kernels/cuda/support/check.h"

#include <cuda_runtime_api.h>

namespace fuseline::cuda {

/// Waits for no other stream. Throws DeviceFault.
class OwnedStream {
 public:
  OwnedStream() { check(cudaStreamCreateWithFlags(&m_stream, cudaStreamNonBlocking), "make a stream"); }
  ~OwnedStream() { cudaStreamDestroy(m_stream); }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  Stream get() const { return m_stream; }

 private:
  cudaStream_t m_stream = nullptr;
};

}  // namespace fuseline::cuda
