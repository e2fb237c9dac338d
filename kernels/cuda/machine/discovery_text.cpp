// The sentences about CUDA devices that are not there. Calls no CUDA function, so every case can be tested anywhere.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/discovery.h"

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
constexpr const char* kDivided =
    "Every GPU here is divided (its MIG mode is on), and none of its instances can be used from here. Create one as "
    "with "
    "nvidia-smi mig -cgi 0 -C, and name it in CUDA_VISIBLE_DEVICES; nvidia-smi -L lists them.";
constexpr const char* kStub =
    "The libcuda.so.1 that was found is the toolkit's stub, not a driver. Take the stubs folder out of "
    "LD_LIBRARY_PATH.";
constexpr const char* kNotReady =
    "The GPUs are not ready: their fabric or their reset has not finished. Check that nvidia-fabricmanager runs.";
constexpr const char* kMismatch =
    "The parts of the NVIDIA driver have different versions, as after an update. Restart the machine.";
constexpr const char* kBusy = "Every GPU is taken by another process in exclusive mode. Wait for it, or end it.";
constexpr const char* kThisIsBusy =
    "It is taken: by another process in exclusive mode, or by instances that it is divided into (MIG). nvidia-smi "
    "shows "
    "both. Wait for it, or name another GPU.";
constexpr const char* kFull =
    "Other processes have all of its memory; not even a context fits. nvidia-smi shows them. Wait for them, or name "
    "another GPU.";

constexpr const char* kForNobody =
    "Its compute mode is Prohibited: no process may use it. nvidia-smi -c DEFAULT, as root, lets them; or name another "
    "GPU.";
constexpr const char* kForAnother =
    "Another process has it, and its compute mode is Exclusive Process. nvidia-smi shows both. Wait for that process, "
    "or name another GPU.";

/// GPUs that the driver has, and this process does not see.
std::string explainUnseen(const DiscoveryFacts& facts) {
  if (facts.driver.numGpus == 0) return kNoGpu;
  if (facts.driver.numDivided == facts.driver.numGpus) return kDivided;
  if (facts.visibleDevices)
    return fmt::format(
        "CUDA_VISIBLE_DEVICES is \"{}\", which leaves none of the {} GPUs that the driver has. Name one "
        "by its number, or unset it.",
        *facts.visibleDevices, facts.driver.numGpus);
  return fmt::format(
      "The driver has {} GPUs, but CUDA sees none of them. Check that this process may open /dev/nvidia*.",
      facts.driver.numGpus);
}

}  // namespace

std::string formatCudaVersion(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Verdict isOpen(int computeMode, bool isInUse) {
  if (computeMode == kProhibited) return Verdict::no(kForNobody);
  return computeMode == kExclusiveProcess && isInUse ? Verdict::no(kForAnother) : Verdict::yes();
}

std::string explainNoDevice(const DiscoveryFacts& facts) {
  switch (facts.errorCode) {
    case kInsufficientDriver: return facts.driverVersion == 0 ? kNoDriver : explainOldDriver(facts);
    case kStubLibrary: return kStub;
    case kSuccess:
    case kNoDevice: return explainUnseen(facts);
    case kSystemNotReady: return kNotReady;
    case kSystemDriverMismatch: return kMismatch;
    case kDevicesUnavailable: return kBusy;
    default:
      return fmt::format("The CUDA runtime could not look for GPUs: {} (error {}). Check that nvidia-smi works.",
                         facts.errorText, facts.errorCode);
  }
}

std::string explainNoContext(int errorCode, const std::string& errorText) {
  switch (errorCode) {
    case kDevicesUnavailable: return kThisIsBusy;
    case kMemoryAllocation: return kFull;
    default: return fmt::format("It gave no context: {} (error {}). Check nvidia-smi.", errorText, errorCode);
  }
}

std::string driverText(const DiscoveryFacts& facts) {
  if (facts.driverVersion == 0) return "none";
  const std::string cuda = "supports CUDA " + formatCudaVersion(facts.driverVersion);
  return facts.driver.version.empty() ? cuda : facts.driver.version + ", " + cuda;
}

}  // namespace fuseline::cuda
