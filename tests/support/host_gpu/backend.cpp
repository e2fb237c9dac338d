// The CUDA backend on the host's GPU, for tests of whole plans. Elementwise code is interpreted: there is no NVRTC.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/discovery.h"
#include "kernels/cuda/nvrtc_compiler.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/host_gpu/host_gpu.h"
#include "tests/support/simt/simt.h"

#include <cstdlib>
#include <string_view>

namespace fuseline::cuda {

namespace {
constexpr const char* kNone = "The GPU of host memory has none.";
}  // namespace

Verdict hasNvrtc() { return Verdict::no(kNone); }
Result<std::string> nvrtcVersionText() { return Error{kNone, ErrorKind::RunFailed}; }
Result<std::vector<char>> compileToCubin(const std::string&, const std::string&, bool) {
  return Error{kNone, ErrorKind::RunFailed};
}
std::string cubinOrigin(const std::string& architecture) { return architecture; }

}  // namespace fuseline::cuda

namespace fuseline::testing {

namespace {

/// FUSELINE_HOST_GPU_TURN=early: streams run as early as they may.
host_gpu::Turn turnOf(const char* name) {
  return name && std::string_view(name) == "early" ? host_gpu::Turn::Early : host_gpu::Turn::Late;
}

Result<std::shared_ptr<Backend>> open() {
  host_gpu::setTurn(turnOf(std::getenv("FUSELINE_HOST_GPU_TURN")));
  simt::setSubmitter([](const void* stream, std::function<void()> work) {
    host_gpu::submit(static_cast<cuda::Stream>(const_cast<void*>(stream)), std::move(work));
  });
  const std::vector<DeviceStatus> devices = cuda::discoverDevices();
  return cuda::makeCudaBackend(0, devices.front().info);
}

}  // namespace

Result<std::shared_ptr<Backend>> cudaTestBackend() {
  // Never closed, as that of a GPU.
  static const auto& backend = *new Result<std::shared_ptr<Backend>>(open());
  return backend;
}

Result<std::shared_ptr<Backend>> compilingCudaTestBackend() { return cudaTestBackend(); }

bool multipliesExactly() { return true; }

}  // namespace fuseline::testing
