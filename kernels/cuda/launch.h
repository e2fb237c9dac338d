// The one way in which kernels are launched; the SIMT harness of the tests has its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/check.h"
#include "kernels/cuda/stream.h"

#include <array>
#include <cstddef>
#include <tuple>

#include <cuda_runtime.h>

namespace fuseline::cuda {

/// What a kernel may ask for without a word.
constexpr std::size_t kPlainSharedBytes = 48 * 1024;

/// Arguments are converted to what the kernel takes. Throws DeviceFault when the launch is refused; what goes wrong
/// while it runs shows when the backend synchronizes.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t sharedBytes, Stream stream,
            const Arguments&... arguments) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  if (sharedBytes > kPlainSharedBytes)
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sharedBytes)),
          "allow a kernel its shared memory");
  std::tuple<Parameters...> values(arguments...);
  auto pointers = std::apply(
      [](auto&... value) { return std::array<void*, sizeof...(Parameters)>{static_cast<void*>(&value)...}; }, values);
  check(cudaLaunchKernel(function, grid, block, pointers.data(), sharedBytes, stream), "launch a kernel");
}

}  // namespace fuseline::cuda
