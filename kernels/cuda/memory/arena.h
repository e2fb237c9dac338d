// GPU memory for the duration of a measurement.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/support/check.h"

#include <cstddef>

namespace fuseline::cuda {

class Arena {
 public:
  /// Throws DeviceFault when there is no room.
  explicit Arena(std::size_t sizeBytes) { check(cudaMalloc(&m_data, sizeBytes), "give memory for timing"); }
  ~Arena() { cudaFree(m_data); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(m_data); }

 private:
  void* m_data = nullptr;
};

}  // namespace fuseline::cuda
