// Remembers the allowed size: a launch asks CUDA about a kernel once, and not again where 48 KB are enough.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/support/shared_allowance.h"

#include "kernels/cuda/support/check.h"

#include <map>
#include <mutex>
#include <utility>

#include <cuda_runtime_api.h>

namespace fuseline::cuda {

namespace {

/// By kernel and device. CUDA keeps the allowances for the process, and so does this.
struct Allowances {
  std::mutex mutex;
  std::map<std::pair<const void*, int>, std::size_t> bytes;
};

Allowances& allowances() {
  static Allowances only;
  return only;
}

/// Shared memory that launches of a kernel may use without a larger allowance.
std::size_t plainSharedBytes(const void* function) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, function), "describe a kernel");
  return static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes);
}

}  // namespace

void allowSharedBytes(const void* function, std::size_t sharedBytes) {
  int device = 0;
  check(cudaGetDevice(&device), "report the current GPU");
  const std::lock_guard lock(allowances().mutex);
  const auto [found, isNew] = allowances().bytes.try_emplace({function, device}, 0);
  if (isNew) found->second = plainSharedBytes(function);
  if (sharedBytes <= found->second) return;
  check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sharedBytes)),
        "allow a kernel its shared memory");
  found->second = sharedBytes;
}

void forgetSharedBytes(const void* function) {
  const std::lock_guard lock(allowances().mutex);
  std::erase_if(allowances().bytes, [&](const auto& entry) { return entry.first.first == function; });
}

}  // namespace fuseline::cuda
