// A cuBLASLt handle, the library that created it, and the message of a failed call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/cublaslt.h"
#include "kernels/cuda/stream/stream.h"

namespace fuseline::cuda {

/// Throws DeviceFault: "cuBLASLt could not <action>: <its words>."
void checkBlas(const CublasLt& library, cublasStatus_t status, const char* action);

class CublasLtSession {
 public:
  /// Throws DeviceFault.
  CublasLtSession(const CublasLt& library, Stream stream) : m_library(library), m_stream(stream) {
    checkBlas(library, library.create(&m_handle), "start");
  }
  ~CublasLtSession() { m_library.destroy(m_handle); }
  CublasLtSession(const CublasLtSession&) = delete;
  CublasLtSession& operator=(const CublasLtSession&) = delete;

  const CublasLt& library() const { return m_library; }
  cublasLtHandle_t handle() const { return m_handle; }
  Stream stream() const { return m_stream; }

 private:
  CublasLt m_library;
  Stream m_stream;
  cublasLtHandle_t m_handle = nullptr;
};

}  // namespace fuseline::cuda
