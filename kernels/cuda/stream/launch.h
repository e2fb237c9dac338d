// The only function that launches kernels; the SIMT harness of the tests replaces it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/launch_count.h"
#include "kernels/cuda/stream/stream.h"
#include "kernels/cuda/support/check.h"
#include "kernels/cuda/support/shared_allowance.h"

#include <array>
#include <cstddef>
#include <tuple>

#include <cuda_runtime.h>

namespace fuseline::cuda {

/// Throws DeviceFault when the launch is refused; errors while it runs show when the backend synchronizes.
inline void launchFunction(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t sharedBytes,
                           Stream stream) {
  if (sharedBytes > 0) allowSharedBytes(function, sharedBytes);
  check(cudaLaunchKernel(function, grid, block, arguments, sharedBytes, stream), "launch a kernel");
  ++numLaunched;
}

/// Arguments are converted to the kernel's parameter types.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t sharedBytes, Stream stream,
            const Arguments&... arguments) {
  std::tuple<Parameters...> values(arguments...);
  auto pointers = std::apply(
      [](auto&... value) { return std::array<void*, sizeof...(Parameters)>{static_cast<void*>(&value)...}; }, values);
  launchFunction(reinterpret_cast<const void*>(kernel), grid, block, pointers.data(), sharedBytes, stream);
}

}  // namespace fuseline::cuda
