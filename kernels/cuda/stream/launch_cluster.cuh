// Launches kernels whose blocks form clusters, which read each other's shared memory; the SIMT harness of the tests
// replaces it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/launch.h"

#include <cooperative_groups.h>

namespace fuseline::cuda {

/// Before 9.0 there are no clusters.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr bool kHasClusters = false;
#else
constexpr bool kHasClusters = true;
#endif

/// Waits for all threads of the cluster, whose shared memory can then be read. No block may end before the others have
/// read its memory.
inline __device__ void syncCluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cooperative_groups::this_cluster().sync();
#endif
}

/// The same place in the dynamic shared memory of another block of the cluster; rank: among its blocks.
template <class T>
__device__ const T* inBlock(unsigned rank, const T* shared) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  return cooperative_groups::this_cluster().map_shared_rank(shared, static_cast<int>(rank));
#else
  return shared;
#endif
}

/// A launch whose rows of blocks are clusters.
class ClusterLaunch {
 public:
  ClusterLaunch(dim3 grid, dim3 block, std::size_t sharedBytes, Stream stream) {
    m_attribute.id = cudaLaunchAttributeClusterDimension;
    m_attribute.val.clusterDim = {grid.x, 1, 1};
    m_config = {.gridDim = grid,
                .blockDim = block,
                .dynamicSmemBytes = sharedBytes,
                .stream = stream,
                .attrs = &m_attribute,
                .numAttrs = 1};
  }
  ClusterLaunch(const ClusterLaunch&) = delete;
  ClusterLaunch& operator=(const ClusterLaunch&) = delete;
  const cudaLaunchConfig_t* config() const { return &m_config; }

 private:
  cudaLaunchAttribute m_attribute{};
  cudaLaunchConfig_t m_config{};
};

/// Can launchInClusters() launch it on the current device, with this number of blocks in a cluster? A device may have
/// no clusters, none of this size, or too little shared memory.
template <class... Parameters>
bool runsInClusters(void (*kernel)(Parameters...), unsigned blocks, dim3 block, std::size_t sharedBytes) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  int device = 0;
  int hasClusters = 0;
  check(cudaGetDevice(&device), "report the current GPU");
  check(cudaDeviceGetAttribute(&hasClusters, cudaDevAttrClusterLaunch, device), "describe itself");
  if (hasClusters == 0) return false;
  allowSharedBytes(function, sharedBytes);
  const ClusterLaunch launch(dim3(blocks), block, sharedBytes, nullptr);
  int numClusters = 0;
  // More than eight blocks have to be allowed.
  if (cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&numClusters, function, launch.config()) == cudaSuccess)
    return numClusters > 0;
  cudaGetLastError();  // a refused size must not be blamed on the next launch
  return false;
}

/// As launch(), in clusters of the grid's blocks in x.
template <class... Parameters, class... Arguments>
void launchInClusters(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t sharedBytes, Stream stream,
                      const Arguments&... arguments) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  allowSharedBytes(function, sharedBytes);
  std::tuple<Parameters...> values(arguments...);
  auto pointers = std::apply(
      [](auto&... value) { return std::array<void*, sizeof...(Parameters)>{static_cast<void*>(&value)...}; }, values);
  const ClusterLaunch launch(grid, block, sharedBytes, stream);
  check(cudaLaunchKernelExC(launch.config(), function, pointers.data()), "launch a kernel");
  ++numLaunched;
}

}  // namespace fuseline::cuda
