// Replaces the launch of a kernel with two phases when device code is compiled for the SIMT harness: blocks run one
// after the other, so that a phase is a grid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/launch.h"

namespace fuseline::cuda {

struct GridPhases {
  bool hasFirst = true;
  bool hasSecond = true;

  void wait() const {}
};

constexpr bool kHasGridPhases = true;

template <class... Parameters>
bool runsAtOnce(void (*)(GridPhases, Parameters...), dim3, dim3, std::size_t) {
  return true;
}

template <class... Parameters, class... Arguments>
void launchInPhases(void (*kernel)(GridPhases, Parameters...), dim3 grid, dim3 block, std::size_t sharedBytes,
                    Stream stream, const Arguments&... arguments) {
  if (sharedBytes > simt::maxSharedBytes()) throw std::invalid_argument("No launch may ask for so much shared memory.");
  ++numLaunched;
  simt::submit(stream, [kernel, grid, block, sharedBytes, values = std::tuple<Parameters...>(arguments...)] {
    for (const GridPhases phases : {GridPhases{.hasSecond = false}, GridPhases{.hasFirst = false}})
      simt::runGrid(
          grid, block, [&] { std::apply(kernel, std::tuple_cat(std::tuple(phases), values)); }, sharedBytes);
  });
}

}  // namespace fuseline::cuda
