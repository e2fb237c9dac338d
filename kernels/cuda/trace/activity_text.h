// Device activities as text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace fuseline::cuda {

struct KernelShape {
  std::array<std::int64_t, 3> grid = {1, 1, 1};
  std::array<std::int64_t, 3> block = {1, 1, 1};
  std::array<std::int64_t, 3> cluster = {1, 1, 1};
  int registersPerThread = 0;
  std::int64_t sharedBytes = 0;  // of a block
};

/// "fuseline::cuda::normForward<float>": the name in the source, without return type, parameters and unnamed
/// namespaces. A name that is not mangled is returned unchanged.
std::string kernelName(const char* mangled);
/// "grid 128x2, block 256, 40 registers, 1 KiB shared memory"; clusters and shared memory only if used.
std::string toString(const KernelShape& shape);

}  // namespace fuseline::cuda
