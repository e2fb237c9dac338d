// The entry points of the CUDA module, and the registry of the devices that it finds.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/module.h"

#include "kernels/cuda/catalog.h"
#include "kernels/cuda/copy_cost.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/machine/discovery.h"
#include "kernels/cuda/support/gpu_target.h"

#include <fmt/format.h>

#include <algorithm>

namespace fuseline::cuda {
namespace {

/// Looks at the machine once, when it is made: devices do not come and go while a program runs.
class CudaRegistry final : public BackendRegistry {
 public:
  CudaRegistry() : m_devices(discoverDevices()) {}

  std::vector<DeviceStatus> devices() const override { return m_devices; }
  Result<std::shared_ptr<Backend>> open(std::string_view deviceId) const override;
  Capabilities capabilities(std::string_view deviceId) const override {
    Capabilities capabilities = supportsStep;
    const ClusterLimits clusters = plannedClusterLimits(capabilityOf(deviceId));
    capabilities.extraCost = [clusters](const Plan& plan, const Step& step) {
      return extraCostOf(plan, step, clusters);
    };
    return capabilities;
  }

 private:
  /// deviceId: an architecture or a device; the oldest GPU for others.
  ComputeCapability capabilityOf(std::string_view deviceId) const;

  std::vector<DeviceStatus> m_devices;
};

Error noSuchDevice(std::string_view deviceId, const std::vector<DeviceStatus>& devices) {
  if (!devices.front().canRun && devices.size() == 1)
    return {fmt::format("Device '{}' cannot be used: {}", deviceId, devices.front().canRun.reason()),
            ErrorKind::NoDevice};
  std::string known;
  for (const DeviceStatus& device : devices) known += (known.empty() ? "" : ", ") + device.info.id;
  return {fmt::format("Device '{}': there is no such device. Valid values: {}.", deviceId, known), ErrorKind::NoDevice};
}

/// "cuda" means the first device that can run; the first at all, with its reason, if none can.
std::string_view meant(std::string_view deviceId, const std::vector<DeviceStatus>& devices) {
  if (deviceId != "cuda") return deviceId;
  const auto able = std::ranges::find_if(devices, [](const DeviceStatus& device) { return bool(device.canRun); });
  return (able == devices.end() ? devices.front() : *able).info.id;
}

ComputeCapability CudaRegistry::capabilityOf(std::string_view deviceId) const {
  if (const auto planned = parseCapability(deviceId)) return *planned;
  const std::string_view wanted = meant(deviceId, m_devices);
  const auto found = std::ranges::find_if(m_devices, [&](const DeviceStatus& d) { return d.info.id == wanted; });
  return found == m_devices.end() ? kOldestGpu : parseCapability(found->info.architecture).value_or(kOldestGpu);
}

Result<std::shared_ptr<Backend>> CudaRegistry::open(std::string_view deviceId) const {
  const std::string_view wanted = meant(deviceId, m_devices);
  const auto found = std::ranges::find_if(m_devices, [&](const DeviceStatus& d) { return d.info.id == wanted; });
  if (found == m_devices.end()) return noSuchDevice(deviceId, m_devices);
  if (!found->canRun)
    return Error{fmt::format("Device '{}' cannot be used: {}", deviceId, found->canRun.reason()), ErrorKind::NoDevice};
  return makeCudaBackend(static_cast<int>(found - m_devices.begin()), found->info);
}

}  // namespace
}  // namespace fuseline::cuda

const char* fuselineCudaHandshake() { return fuseline::cuda::kModuleHandshake; }

fuseline::BackendRegistry* fuselineCudaCreateRegistry() { return new fuseline::cuda::CudaRegistry(); }

void fuselineCudaDestroyRegistry(fuseline::BackendRegistry* registry) { delete registry; }
