// Replaces the launch of a kernel in clusters when device code is compiled for the SIMT harness.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/simt/include/kernels/cuda/stream/launch.h"

namespace fuseline::cuda {

constexpr bool kHasClusters = true;

inline void syncCluster(std::source_location where = std::source_location::current()) { simt::syncCluster(where); }

template <class T>
const T* inBlock(unsigned rank, const T* shared) {
  return static_cast<const T*>(simt::sharedOfBlock(rank, shared));
}

template <class... Parameters>
bool runsInClusters(void (*)(Parameters...), unsigned, dim3, std::size_t sharedBytes) {
  return sharedBytes <= simt::maxSharedBytes();
}

template <class... Parameters, class... Arguments>
void launchInClusters(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t sharedBytes, Stream stream,
                      const Arguments&... arguments) {
  if (sharedBytes > simt::maxSharedBytes()) throw std::invalid_argument("No launch may ask for so much shared memory.");
  ++numLaunched;
  simt::submit(stream, [kernel, grid, block, sharedBytes, values = std::tuple<Parameters...>(arguments...)] {
    simt::runGrid(
        grid, block, [&] { std::apply(kernel, values); }, sharedBytes, grid.x);
  });
}

}  // namespace fuseline::cuda
