// Replaces the launch of a kernel when device code is compiled for the SIMT harness.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/launch_count.h"
#include "kernels/cuda/stream/stream.h"
#include "tests/support/simt/include/cuda_runtime.h"

#include <cstddef>
#include <stdexcept>
#include <tuple>

namespace fuseline::cuda {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t sharedBytes, Stream stream,
            const Arguments&... arguments) {
  if (sharedBytes > simt::maxSharedBytes()) throw std::invalid_argument("No launch may ask for so much shared memory.");
  ++numLaunched;
  simt::submit(stream, [kernel, grid, block, sharedBytes, values = std::tuple<Parameters...>(arguments...)] {
    simt::runGrid(
        grid, block, [&] { std::apply(kernel, values); }, sharedBytes);
  });
}

}  // namespace fuseline::cuda
