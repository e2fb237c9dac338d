// Collects the reference, the CPU and the CUDA module into one registry.
// SPDX-License-Identifier: Apache-2.0
#include "app/backends.h"

#include "core/support/text.h"
#include "kernels/cuda/module.h"
#ifdef FUSELINE_HAS_CPU
#include "kernels/cpu/cpu_backend.h"
#endif

#include <dlfcn.h>

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// The CUDA module and its registry. Stays loaded: backends may outlive the registry that made them.
class CudaModule {
 public:
  CudaModule() { m_problem = load(); }
  ~CudaModule() {
    if (m_registry) m_destroy(m_registry);
  }
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  std::vector<DeviceStatus> devices() const {
    if (m_registry) return m_registry->devices();
    return {{.info = {.id = "cuda", .name = "NVIDIA GPU"}, .canRun = Verdict::no(m_problem)}};
  }

  Result<std::shared_ptr<Backend>> open(std::string_view deviceId) const {
    if (m_registry) return m_registry->open(deviceId);
    return Error{fmt::format("{}: {}", deviceId, m_problem), ErrorKind::NoDevice};
  }

  Capabilities capabilities(std::string_view deviceId) const {
    return m_registry ? m_registry->capabilities(deviceId) : Capabilities();
  }

 private:
  template <class Function>
  static Function* symbol(void* library, const char* name) {
    return reinterpret_cast<Function*>(dlsym(library, name));
  }

  /// Returns what went wrong; empty when the registry is there.
  std::string load() {
    std::error_code ignored;
    const auto path = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / cuda::kModulePath;
    if (!std::filesystem::exists(path, ignored)) return "This build has no CUDA module.";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return fmt::format("The CUDA module does not load: {}.", dlerror());
    auto* handshake = symbol<cuda::Handshake>(library, cuda::kHandshakeSymbol);
    auto* create = symbol<cuda::CreateRegistry>(library, cuda::kCreateRegistrySymbol);
    m_destroy = symbol<cuda::DestroyRegistry>(library, cuda::kDestroyRegistrySymbol);
    const bool isComplete = handshake && create && m_destroy;
    if (!isComplete || std::string_view(handshake()) != cuda::kModuleHandshake)
      return "The CUDA module belongs to another build of Fuseline. Build both together.";
    m_registry = create();
    return {};
  }

  cuda::DestroyRegistry* m_destroy = nullptr;
  BackendRegistry* m_registry = nullptr;
  std::string m_problem;
};

#ifndef FUSELINE_HAS_CPU
constexpr const char* kNoCpu = "This build has no CPU kernels. The device \"reference\" runs everything, slowly.";
#endif

class ProgramRegistry final : public BackendRegistry {
 public:
  std::vector<DeviceStatus> devices() const override {
    std::vector<DeviceStatus> list = {cpuStatus()};
    for (DeviceStatus& device : cuda().devices()) list.push_back(std::move(device));
    list.push_back({.info = makeReferenceBackend()->device()});
    return list;
  }

  Result<std::shared_ptr<Backend>> open(std::string_view deviceId) const override {
    if (deviceId == "reference") return makeReferenceBackend();
    if (deviceId == "cpu") return openCpu();
    if (isGpu(deviceId)) return cuda().open(deviceId);
    return Error{fmt::format("There is no device \"{}\". Valid values: {}. `fuseline devices` describes them.",
                             deviceId, fmt::join(deviceIds(), ", ")),
                 ErrorKind::NoDevice};
  }

  Capabilities capabilities(std::string_view deviceId) const override {
    const bool isOfCuda = isGpu(deviceId) || parseCapability(deviceId);
    return isOfCuda ? cuda().capabilities(deviceId) : BackendRegistry::capabilities(deviceId);
  }

 private:
  static bool isGpu(std::string_view deviceId) { return deviceId.substr(0, 4) == "cuda"; }

#ifdef FUSELINE_HAS_CPU
  static Result<std::shared_ptr<Backend>> openCpu() { return cpu::makeCpuBackend(); }
  static DeviceStatus cpuStatus() { return {.info = cpu::makeCpuBackend()->device()}; }
#else
  static Result<std::shared_ptr<Backend>> openCpu() {
    return Error{fmt::format("cpu: {}", kNoCpu), ErrorKind::NoDevice};
  }
  static DeviceStatus cpuStatus() { return {.info = {.id = "cpu", .name = "CPU"}, .canRun = Verdict::no(kNoCpu)}; }
#endif

  std::vector<std::string> deviceIds() const {
    std::vector<std::string> ids;
    for (const DeviceStatus& device : devices()) ids.push_back(device.info.id);
    return ids;
  }

  const CudaModule& cuda() const {
    std::call_once(m_cudaLoaded, [this] { m_cuda = std::make_unique<CudaModule>(); });
    return *m_cuda;
  }

  mutable std::once_flag m_cudaLoaded;
  mutable std::unique_ptr<CudaModule> m_cuda;
};

}  // namespace

std::unique_ptr<BackendRegistry> makeBackendRegistry() { return std::make_unique<ProgramRegistry>(); }

}  // namespace fuseline
