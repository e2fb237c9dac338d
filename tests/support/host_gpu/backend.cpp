// The CUDA backend on the host's GPU, for tests of whole plans.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_backend.h"

#include "kernels/cuda/machine/discovery.h"
#include "tests/support/cuda_test_backend.h"

namespace fuseline::testing {

Result<std::shared_ptr<Backend>> cudaTestBackend() {
  // Never closed, as that of a GPU.
  static const auto& backend =
      *new Result<std::shared_ptr<Backend>>(cuda::makeCudaBackend(0, cuda::discoverDevices().front().info));
  return backend;
}

Result<std::shared_ptr<Backend>> compilingCudaTestBackend() { return cudaTestBackend(); }

bool multipliesExactly() { return true; }

}  // namespace fuseline::testing
