// The sentences about CUDA devices that are not there. Calls no CUDA function, so every case can be tested anywhere.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/discovery.h"

#include <fmt/format.h>

namespace fuseline::cuda {
namespace {

std::string explainOldDriver(const DiscoveryFacts& facts) {
  return fmt::format(
      "The NVIDIA driver supports CUDA up to {}, but this build needs CUDA {}. Update the driver, or on a data-center "
      "GPU install NVIDIA's package cuda-compat.",
      formatCudaVersion(facts.driverVersion), formatCudaVersion(facts.runtimeVersion));
}

constexpr const char* kNoDriver =
    "No NVIDIA driver was found (libcuda.so.1). Install it; start containers with access to the GPUs, as with docker "
    "run --gpus all.";
constexpr const char* kNoGpu = "The NVIDIA driver finds no GPU. Check nvidia-smi and CUDA_VISIBLE_DEVICES.";
constexpr const char* kDivided =
    "All GPUs are in MIG mode, without a usable instance. Create one, as with nvidia-smi mig -cgi 0 -C, and name it in "
    "CUDA_VISIBLE_DEVICES; nvidia-smi -L lists them.";
constexpr const char* kStub =
    "The libcuda.so.1 that was found is the toolkit's stub, not a driver. Remove the stubs folder from "
    "LD_LIBRARY_PATH.";
constexpr const char* kNotReady =
    "The GPUs are not ready: their fabric or their reset has not finished. Check that nvidia-fabricmanager runs.";
constexpr const char* kMismatch =
    "The parts of the NVIDIA driver have different versions, as after an update. Restart the machine.";
constexpr const char* kBusy = "Another process uses every GPU in exclusive mode. Wait for it, or end it.";
constexpr const char* kThisIsBusy =
    "It is in use by another process in exclusive mode, or divided into MIG instances; nvidia-smi shows both. Wait for "
    "it, or choose another GPU.";
constexpr const char* kFull =
    "Other processes use all of its memory, so no context fits; nvidia-smi shows them. Wait for them, or choose "
    "another GPU.";

constexpr const char* kForNobody =
    "Its compute mode is Prohibited. Allow processes with nvidia-smi -c DEFAULT (as root), or choose another GPU.";
constexpr const char* kForAnother =
    "Its compute mode is Exclusive Process, and another process uses it; nvidia-smi shows both. Wait for it, or choose "
    "another GPU.";

/// GPUs that the driver has, and this process does not see.
std::string explainUnseen(const DiscoveryFacts& facts) {
  if (facts.driver.numGpus == 0) return kNoGpu;
  if (facts.driver.numDivided == facts.driver.numGpus) return kDivided;
  if (facts.visibleDevices)
    return fmt::format(
        "CUDA_VISIBLE_DEVICES is \"{}\", which selects none of the {} GPUs. Name one by its number, or unset it.",
        *facts.visibleDevices, facts.driver.numGpus);
  return fmt::format("The driver has {} GPUs, but CUDA finds none. Check that this process may open /dev/nvidia*.",
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
