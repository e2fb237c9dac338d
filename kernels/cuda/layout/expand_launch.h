// The launch of Expand's backward. Plain C++: the kernel is in expand_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>

namespace fuseline::cuda {

/// dx: [rows, width]; dy: [rows, copies, width], its rows `stride` elements apart.
struct CopySums {
  const void* dy = nullptr;
  void* dx = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t count = 0;  // elements of dx
  std::int64_t width = 0;
  std::int64_t copies = 1;
  std::int64_t stride = 0;
};

void launchCopySums(const CopySums& sums, Stream stream);

}  // namespace fuseline::cuda
