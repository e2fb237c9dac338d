// Launches kernels with two phases, between which all blocks wait for each other; the SIMT harness of the tests
// replaces it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/launch.h"

#include <cooperative_groups.h>

namespace fuseline::cuda {

/// The phases that a launch has.
struct GridPhases {
  bool hasFirst = true;
  bool hasSecond = true;

  /// All threads call it between the phases.
  __device__ void wait() const {
    if (hasFirst && hasSecond) cooperative_groups::this_grid().sync();
  }
};

/// Before 9.0 kernels have the first phase only: with the second one their registers would not suffice.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr bool kHasGridPhases = false;
#else
constexpr bool kHasGridPhases = true;
#endif

inline int attributeOf(int device, cudaDeviceAttr attribute) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, attribute, device), "describe itself");
  return value;
}

/// Can launchInPhases() launch it? All blocks have to run at once.
template <class... Parameters>
bool runsAtOnce(void (*kernel)(GridPhases, Parameters...), dim3 grid, dim3 block, std::size_t sharedBytes) {
  constexpr int kFirstMajor = 9;
  const auto* const function = reinterpret_cast<const void*>(kernel);
  int device = 0;
  check(cudaGetDevice(&device), "report the current GPU");
  const bool canWait = attributeOf(device, cudaDevAttrCooperativeLaunch) != 0 &&
                       attributeOf(device, cudaDevAttrComputeCapabilityMajor) >= kFirstMajor;
  if (!canWait) return false;
  if (sharedBytes > 0) allowSharedBytes(function, sharedBytes);
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, static_cast<int>(block.x * block.y * block.z),
                                                      sharedBytes),
        "report how many blocks run at once");
  return grid.x * grid.y * grid.z <=
         static_cast<unsigned>(blocks * attributeOf(device, cudaDevAttrMultiProcessorCount));
}

/// As launch(), for a kernel whose first argument are its phases: it has both.
template <class... Parameters, class... Arguments>
void launchInPhases(void (*kernel)(GridPhases, Parameters...), dim3 grid, dim3 block, std::size_t sharedBytes,
                    Stream stream, const Arguments&... arguments) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  if (sharedBytes > 0) allowSharedBytes(function, sharedBytes);
  std::tuple<GridPhases, Parameters...> values(GridPhases(), arguments...);
  auto pointers = std::apply(
      [](auto&... value) { return std::array<void*, 1 + sizeof...(Parameters)>{static_cast<void*>(&value)...}; },
      values);
  check(cudaLaunchCooperativeKernel(function, grid, block, pointers.data(), sharedBytes, stream), "launch a kernel");
  ++numLaunched;
}

}  // namespace fuseline::cuda
