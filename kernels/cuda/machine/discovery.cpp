// Asks the CUDA runtime for its devices.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/discovery.h"

#include "kernels/cuda/support/gpu_target.h"

#include <array>
#include <cstdlib>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {
namespace {

static_assert(kSuccess == cudaSuccess && kStubLibrary == cudaErrorStubLibrary && kNoDevice == cudaErrorNoDevice);
static_assert(kInsufficientDriver == cudaErrorInsufficientDriver && kSystemNotReady == cudaErrorSystemNotReady);
static_assert(kSystemDriverMismatch == cudaErrorSystemDriverMismatch);
static_assert(kProhibited == cudaComputeModeProhibited && kExclusiveProcess == cudaComputeModeExclusiveProcess);
static_assert(kDevicesUnavailable == cudaErrorDevicesUnavailable && kMemoryAllocation == cudaErrorMemoryAllocation);

/// An error here is an answer, not a failure: a machine without a driver reports one.
DiscoveryFacts askRuntime() {
  DiscoveryFacts facts;
  const cudaError_t error = cudaGetDeviceCount(&facts.numDevices);
  facts.errorCode = error;
  facts.errorText = cudaGetErrorString(error);
  if (error != cudaSuccess) facts.numDevices = 0;
  if (cudaDriverGetVersion(&facts.driverVersion) != cudaSuccess) facts.driverVersion = 0;
  if (cudaRuntimeGetVersion(&facts.runtimeVersion) != cudaSuccess) facts.runtimeVersion = CUDART_VERSION;
  if (const Nvml* const nvml = loadNvml()) facts.driver = driverFactsOf(*nvml);
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visibleDevices = visible;
  return facts;
}

std::vector<std::pair<std::string, std::string>> versionDetails(const DiscoveryFacts& facts) {
  return {{"driver", driverText(facts)}, {"CUDA runtime", formatCudaVersion(facts.runtimeVersion)}};
}

DeviceInfo describe(int device, const cudaDeviceProp& properties, const DiscoveryFacts& facts) {
  DeviceInfo info{.id = fmt::format("cuda:{}", device),
                  .name = properties.name,
                  .architecture = fmt::format("sm_{}{}", properties.major, properties.minor),
                  .memoryBytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                  .details = versionDetails(facts)};
  info.details.emplace_back("compute capability", fmt::format("{}.{}", properties.major, properties.minor));
  info.details.emplace_back("multiprocessors", fmt::format("{}", properties.multiProcessorCount));
  info.details.emplace_back("L2 bytes", fmt::format("{}", properties.l2CacheSize));
  return info;
}

/// Checks that need no context on the GPU.
Verdict canBeUsed(int device, const cudaDeviceProp& properties) {
  const ComputeCapability capability = {properties.major, properties.minor};
  if (Verdict verdict = hasKernelsFor(capability, FUSELINE_CUDA_TARGETS); !verdict) return verdict;
  int computeMode = cudaComputeModeDefault;
  if (cudaDeviceGetAttribute(&computeMode, cudaDevAttrComputeMode, device) != cudaSuccess) return Verdict::yes();
  const Nvml* const nvml = loadNvml();
  return isOpen(computeMode, nvml && isInUse(*nvml, busIdOf(device)));
}

DeviceStatus inspect(int device, const DiscoveryFacts& facts) {
  cudaDeviceProp properties{};
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess)
    return {.info = describe(device, properties, facts),
            .canRun = canBeUsed(device, properties),
            .nativeRecipes = recipesFor({properties.major, properties.minor})};
  return {.info = {.id = fmt::format("cuda:{}", device), .name = "CUDA device", .details = versionDetails(facts)},
          .canRun = Verdict::no(fmt::format("The driver does not describe this GPU: {}.", cudaGetErrorString(error)))};
}

}  // namespace

std::string busIdOf(int device) {
  std::array<char, 32> text{};
  const cudaError_t error = cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device);
  return error == cudaSuccess ? text.data() : "";
}

std::vector<DeviceStatus> discoverDevices() {
  const DiscoveryFacts facts = askRuntime();
  if (facts.numDevices == 0)
    return {{.info = {.id = "cuda", .name = "NVIDIA GPU", .details = versionDetails(facts)},
             .canRun = Verdict::no(explainNoDevice(facts))}};
  std::vector<DeviceStatus> devices;
  for (int device = 0; device < facts.numDevices; ++device) devices.push_back(inspect(device, facts));
  return devices;
}

}  // namespace fuseline::cuda
