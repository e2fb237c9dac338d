// The sentences about CUDA devices that are not there. Calls no CUDA function, so every case can be tested anywhere.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/discovery.h"

#include <fmt/format.h>

namespace fuseline::cuda {
namespace {

std::string explainOldDriver(const DiscoveryFacts& facts) {
  return fmt::format(
      "The NVIDIA driver supports CUDA {} at most, and this build needs CUDA {}. Update the driver, or on "
      "a data centre's GPU install NVIDIA's package cuda-compat of that version.",
      formatCudaVersion(facts.driverVersion), formatCudaVersion(facts.runtimeVersion));
}

constexpr const char* kNoDriver =
    "No NVIDIA driver is installed here (libcuda.so.1 was not found). Install one; a container must be started with "
    "access to the GPUs, as with docker run --gpus all.";
constexpr const char* kNoGpu =
    "The NVIDIA driver is there, but it sees no GPU. Check nvidia-smi and CUDA_VISIBLE_DEVICES.";
constexpr const char* kStub =
    "The libcuda.so.1 that was found is the toolkit's stub, not a driver. Take the stubs folder out of "
    "LD_LIBRARY_PATH.";
constexpr const char* kNotReady =
    "The GPUs are not ready: their fabric or their reset has not finished. Check that nvidia-fabricmanager runs.";
constexpr const char* kMismatch =
    "The parts of the NVIDIA driver have different versions, as after an update. Restart the machine.";
constexpr const char* kBusy = "Every GPU is taken by another process in exclusive mode. Wait for it, or end it.";

}  // namespace

std::string formatCudaVersion(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Verdict canRun(int major, int minor) {
  if (minor == 0 && (major == 9 || major == 10)) return Verdict::yes();
  return Verdict::no(fmt::format(
      "Its compute capability is {}.{}, and this build has kernels for 9.0 and 10.0 only. Run on the device "
      "cpu.",
      major, minor));
}

std::string explainNoDevice(const DiscoveryFacts& facts) {
  switch (facts.errorCode) {
    case kInsufficientDriver: return facts.driverVersion == 0 ? kNoDriver : explainOldDriver(facts);
    case kStubLibrary: return kStub;
    case kSuccess:
    case kNoDevice: return kNoGpu;
    case kSystemNotReady: return kNotReady;
    case kSystemDriverMismatch: return kMismatch;
    case kDevicesUnavailable: return kBusy;
    default:
      return fmt::format("The CUDA runtime could not look for GPUs: {} (error {}). Check that nvidia-smi works.",
                         facts.errorText, facts.errorCode);
  }
}

}  // namespace fuseline::cuda
