// Streams and memory with owners; faults with the name of the step that was launched last.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_backend.h"

#include "core/runtime/executor.h"
#include "core/support/text.h"
#include "kernels/cuda/attention/cudnn_graphs.h"
#include "kernels/cuda/catalog.h"
#include "kernels/cuda/collective/nccl_communicator.h"
#include "kernels/cuda/copy_cost.h"
#include "kernels/cuda/elementwise/nvrtc_compiler.h"
#include "kernels/cuda/elementwise/program_cache.h"
#include "kernels/cuda/elementwise/program_sources.h"
#include "kernels/cuda/gemm/cublaslt_gemm.h"
#include "kernels/cuda/gemm/cublaslt_probe.h"
#include "kernels/cuda/gemm/epilogue_passes.h"
#include "kernels/cuda/machine/discovery.h"
#include "kernels/cuda/machine/fault.h"
#include "kernels/cuda/machine/library_versions.h"
#include "kernels/cuda/machine/nvml.h"
#include "kernels/cuda/machine/peaks.h"
#include "kernels/cuda/machine/recipe_probe.h"
#include "kernels/cuda/memory/cache_filler.h"
#include "kernels/cuda/memory/stream_transfer.h"
#include "kernels/cuda/quantize/step_amaxes.h"
#include "kernels/cuda/stream/event_clock.h"
#include "kernels/cuda/stream/graph_capture.h"
#include "kernels/cuda/stream/lanes.h"
#include "kernels/cuda/stream/owned_stream.h"
#include "kernels/cuda/support/check.h"
#include "kernels/cuda/trace/cupti_trace.h"
#include "kernels/cuda/trace/launch_log.h"
#include "kernels/cuda/trace/nvtx_range.h"

#include <cstdlib>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(int device, std::byte* data, std::size_t sizeBytes)
      : m_device(device), m_data(data), m_sizeBytes(sizeBytes) {}
  ~CudaMemory() override {
    cudaSetDevice(m_device);
    cudaFree(m_data);
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  std::byte* data() override { return m_data; }
  std::size_t sizeBytes() const override { return m_sizeBytes; }

 private:
  int m_device;
  std::byte* m_data;
  std::size_t m_sizeBytes;
};

Error outOfMemory(const std::string& deviceId, std::size_t wanted) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) free = total = 0;
  return {fmt::format("{}: the plan needs {} of GPU memory, but only {} of {} are free. Make the pipeline smaller, or "
                      "end other programs on the GPU.",
                      deviceId, formatBytes(static_cast<std::int64_t>(wanted)),
                      formatBytes(static_cast<std::int64_t>(free)), formatBytes(static_cast<std::int64_t>(total))),
          ErrorKind::RunFailed};
}

std::string explainFault(int device, cudaError_t error, const std::string& lastStep) {
  return faultText(device, cudaGetErrorString(error), cudaGetErrorName(error), lastStep);
}

cudaError_t lastingErrorOf(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t asked = cudaStreamIsCapturing(stream, &status);
  const bool isCapturing = asked == cudaSuccess && status != cudaStreamCaptureStatusNone;
  return lastingError(isCapturing, [&] { return cudaStreamQuery(stream); });
}

struct LaunchPlace {
  int device;
  Stream stream;
  std::shared_ptr<LaunchLog> log;
  std::string rank;  // "rank 1: "; empty: the only one
};

class LoggedKernel final : public Kernel {
 public:
  LoggedKernel(std::unique_ptr<Kernel> kernel, const Plan& plan, const Step& step, LaunchPlace place)
      : m_kernel(std::move(kernel)), m_label(plan, step, place.rank), m_place(std::move(place)) {}
  std::size_t workspaceBytes() const override { return m_kernel->workspaceBytes(); }
  std::vector<std::string> ways() const override { return m_kernel->ways(); }
  std::int64_t launches() const override { return m_kernel->launches(); }
  void run(std::span<std::byte* const> operands, std::byte* workspace) override try {
    const NvtxRange range(m_label);
    useDevice(m_place.device);
    m_place.log->add(m_label.name());
    m_kernel->run(operands, workspace);
  } catch (const DeviceFault&) {
    const cudaError_t error = lastingErrorOf(m_place.stream);
    if (error == cudaSuccess) throw;
    throw DeviceFault(explainFault(m_place.device, error, m_place.log->lastStep()));
  }

 private:
  std::unique_ptr<Kernel> m_kernel;
  NvtxLabel m_label;
  LaunchPlace m_place;
};

/// Where compiled programs are kept; empty: nowhere.
std::filesystem::path programFolder() {
  const std::filesystem::path cache = userCacheFolder(std::getenv);
  return cache.empty() ? cache : cache / "programs";
}

/// For run files: it decides how fast activations and their chains are.
constexpr const char* kElementwiseCode = "elementwise code";

std::string elementwiseCode(const std::string& architecture) {
  const Verdict nvrtc = hasNvrtc();
  if (nvrtc) return "compiled by NVRTC";
  const bool hasBundle = ProgramCache(bundledPrograms(), bundledOrigin(architecture)).hasAny();
  return fmt::format("interpreted, which is slower{}: {}", hasBundle ? ", except for the programs of this bundle" : "",
                     nvrtc.reason());
}

ComputeCapability capabilityOf(const DeviceInfo& info) {
  return parseCapability(info.architecture).value_or(ComputeCapability());
}

int numMultiprocessors(int device) {
  int count = 1;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "report its number of multiprocessors");
  return count;
}

std::size_t maxSharedBytes(int device) {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "report the shared memory of a block");
  return static_cast<std::size_t>(bytes);
}

/// Makes the context, which a GPU may refuse that can be described.
Result<void> makeContext(const DeviceInfo& info, int device) {
  cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) error = cudaFree(nullptr);
  if (error == cudaSuccess) return {};
  return Error{
      fmt::format("Device '{}' cannot be used: {}", info.id, explainNoContext(error, cudaGetErrorString(error))),
      ErrorKind::NoDevice};
}

/// The step that is compiled first.
const Step* findFirstWork(const Plan& plan) {
  const auto first = std::ranges::find_if(
      plan.steps, [](const Step& step) { return !step.isView && !step.transfer && !step.collective; });
  return first == plan.steps.end() ? nullptr : &*first;
}

/// device: needed by the passes that follow GEMMs.
std::unique_ptr<GemmLibrary> makeGemms(const DeviceContext& device, const std::string& deviceName) {
  return makeGemmsWithPasses(makeCublasLtGemms(device.stream, algorithmPolicy(std::getenv), deviceName), device);
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device, DeviceInfo info)
      : m_device(device),
        m_info(std::move(info)),
        m_programs(makeNvrtcCompiler(nvrtcTarget(capabilityOf(m_info)), {.kept = programFolder()},
                                     [this](const Error& refusal) { noteInterpreted(refusal); })) {
    m_info.details.emplace_back(kElementwiseCode, elementwiseCode(nvrtcTarget(capabilityOf(m_info))));
    std::ranges::copy(libraryVersions(), std::back_inserter(m_info.details));
    m_info.details.emplace_back("GEMM algorithms", describe(algorithmPolicy(std::getenv)));
    m_context = {.stream = m_stream.get(),
                 .lanes = m_lanes.get(),
                 .numMultiprocessors = numMultiprocessors(device),
                 .capability = capabilityOf(m_info),
                 .maxSharedBytes = maxSharedBytes(device),
                 .programs = m_programs.get(),
                 .readBack =
                     [this](void* to, const std::byte* from, std::size_t sizeBytes) {
                       refuseWhileCapturing(m_stream.get());
                       copy(to, from, sizeBytes, cudaMemcpyDeviceToHost);
                     },
                 .allocate =
                     [this](std::size_t sizeBytes) {
                       Result<std::unique_ptr<DeviceMemory>> memory = allocate(sizeBytes);
                       if (!memory) throw std::runtime_error(memory.error().message);
                       return std::move(*memory);
                     },
                 .amaxes = &m_amaxes};
    m_gemms = makeGemms(m_context, m_info.name);
    m_context.gemms = m_gemms.get();
    m_context.timer = m_gemms.get();
    m_context.graphs = m_graphs.get();
  }

  /// Members release their resources on the selected device.
  ~CudaBackend() override { cudaSetDevice(m_device); }
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  const DeviceInfo& device() const override { return m_info; }
  Verdict supports(const KernelQuery& query) const override { return supportsStep(query); }
  Saving extraCost(const Plan& plan, const Step& step) const override {
    return extraCostOf(plan, step, clusterLimitsOf(m_context.capability, m_context.maxSharedBytes));
  }

  /// As its library says, where there is one. A capability that is too low says more than the library's refusal.
  Verdict multiplies(const Recipe& recipe) override {
    const Verdict byCapability = Backend::multiplies(recipe);
    const Result<CublasLt> library = loadCublasLt();
    if (!library) return byCapability;
    try {
      useDevice(m_device);
      const Verdict verdict = probeRecipe(CublasLtSession(*library, m_stream.get()), recipe, m_context.capability);
      return verdict || byCapability ? verdict : byCapability;
    } catch (const DeviceFault& fault) {
      return Verdict::no(fault.what());
    }
  }

  Result<std::unique_ptr<Kernel>> compile(const Graph& graph, const Plan& plan, const Step& step,
                                          const CompileOptions& options) override {
    try {
      useDevice(m_device);
      if (&step == findFirstWork(plan)) m_programs->prepare(programSources(graph, plan, options, m_context));
      Result<std::unique_ptr<Kernel>> kernel = compileStep({{graph, plan, step, options}, m_context});
      if (!kernel) return kernel.error();
      return named(std::move(*kernel), plan, step);
    } catch (const std::exception& failure) {
      return Error{fmt::format("{}: step \"{}\" could not be prepared. {}", m_info.id, step.name, failure.what()),
                   ErrorKind::RunFailed};
    }
  }

  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t sizeBytes) override {
    try {
      useDevice(m_device);
    } catch (const DeviceFault& fault) {
      return Error{fmt::format("{}: {}", m_info.id, fault.what()), ErrorKind::RunFailed};
    }
    void* data = nullptr;
    const cudaError_t error = cudaMalloc(&data, sizeBytes);
    if (error == cudaSuccess)
      return std::unique_ptr<DeviceMemory>(
          std::make_unique<CudaMemory>(m_device, static_cast<std::byte*>(data), sizeBytes));
    cudaGetLastError();  // a refused allocation breaks nothing: take its error off the record
    if (error == cudaErrorMemoryAllocation) return outOfMemory(m_info.id, sizeBytes);
    return Error{fmt::format("{}: no memory: {}.", m_info.id, cudaGetErrorString(error)), ErrorKind::RunFailed};
  }

  std::optional<std::int64_t> freeBytes() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    const bool isKnown = cudaSetDevice(m_device) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess;
    return isKnown ? std::optional(static_cast<std::int64_t>(free)) : std::nullopt;
  }

  Result<std::unique_ptr<DeviceMemory>> allocateOnHost(std::size_t sizeBytes) override {
    try {
      useDevice(m_device);
      return makePinnedMemory(m_device, sizeBytes);
    } catch (const DeviceFault& fault) {
      return Error{fmt::format("{}: no {} of host memory for offloaded tensors. {}", m_info.id,
                               formatBytes(static_cast<std::int64_t>(sizeBytes)), fault.what()),
                   ErrorKind::RunFailed};
    }
  }

  std::unique_ptr<Transfer> makeTransfer(std::span<std::byte> to, const std::byte* from,
                                         TransferDirection direction) override {
    useDevice(m_device);
    return makeStreamTransfer({.stream = m_stream.get(), .besides = m_copyStream.get()}, to, from, direction);
  }

  std::unique_ptr<Kernel> named(std::unique_ptr<Kernel> kernel, const Plan& plan, const Step& step) override {
    return std::make_unique<LoggedKernel>(
        std::move(kernel), plan, step,
        LaunchPlace{.device = m_device, .stream = m_stream.get(), .log = m_log, .rank = m_rank});
  }

  Result<std::unique_ptr<Communicator>> join(Communicator& host, SumOrder order) override {
    const Result<Nccl> nccl = loadNccl();
    if (!nccl) return nccl.error();
    if (Result<void> fits = checkVersion(*nccl); !fits) return fits.error();
    try {
      useDevice(m_device);
      auto membership = std::make_shared<NcclMembership>(*nccl, host);
      m_membership = membership;
      m_rank = fmt::format("rank {}: ", host.rank());
      return makeNcclCommunicator(std::move(membership), order, m_stream.get(), m_copyStream.get());
    } catch (const std::exception& failure) {
      return Error{fmt::format("{}: {}", m_info.id, failure.what()), ErrorKind::NoDevice};
    }
  }

  void upload(std::byte* device, std::span<const std::byte> host) override {
    copy(device, host.data(), host.size(), cudaMemcpyHostToDevice);
  }

  void download(std::span<std::byte> host, const std::byte* device) override {
    copy(host.data(), device, host.size(), cudaMemcpyDeviceToHost);
  }

  /// A fault may show in any call, in the first one, too.
  void synchronize() override {
    cudaError_t error = cudaSetDevice(m_device);
    if (const auto membership = m_membership.lock())
      for (const Stream stream : {m_stream.get(), m_copyStream.get()})
        if (error == cudaSuccess) error = static_cast<cudaError_t>(membership->waitFor(stream));
    if (error == cudaSuccess) error = cudaStreamSynchronize(m_stream.get());
    if (error == cudaSuccess) error = cudaStreamSynchronize(m_copyStream.get());
    if (error == cudaSuccess) return;
    throw DeviceFault(explainFault(m_device, error, m_log->lastStep()));
  }

  bool isLost() const override { return lastingErrorOf(m_stream.get()) != cudaSuccess; }

  std::unique_ptr<DeviceClock> makeClock(std::size_t numMoments) override {
    return makeEventClock(m_device, m_stream.get(), numMoments, m_copyStream.get());
  }

  Result<std::unique_ptr<DeviceTrace>> makeTrace() override {
    const Result<Cupti> library = loadCupti();
    if (!library) return library.error();
    Result<std::unique_ptr<DeviceTrace>> trace = makeCuptiTrace(*library);
    if (trace) noteOnce("CUPTI", versionOf(*library));
    return trace;
  }

  Result<std::unique_ptr<RecordedLaunches>> record(const std::function<Result<void>()>& launches) override {
    try {
      return captureLaunches({.device = m_device, .stream = m_stream.get(), .log = m_log, .rank = m_rank}, launches);
    } catch (const DeviceFault& fault) {
      return Error{fmt::format("{}: {}", m_info.id, fault.what()), ErrorKind::RunFailed};
    }
  }

  std::vector<std::pair<std::string, std::string>> conditions() override {
    const Nvml* const nvml = loadNvml();
    return nvml ? factsOf(conditionsOf(*nvml, m_busId)) : std::vector<std::pair<std::string, std::string>>();
  }

  Result<std::unique_ptr<CacheFiller>> makeCacheFiller() override {
    try {
      useDevice(m_device);
      return cuda::makeCacheFiller(m_device, m_stream.get());
    } catch (const DeviceFault& fault) {
      return Error{fmt::format("{}: no memory to fill its cache with. {}", m_info.id, fault.what()),
                   ErrorKind::RunFailed};
    }
  }

  Result<DevicePeaks> measurePeaks() override {
    try {
      useDevice(m_device);
      return cuda::measurePeaks(m_device, m_stream.get(), *m_gemms);
    } catch (const DeviceFault& fault) {
      return Error{fmt::format("{}: its peaks could not be measured. {}", m_info.id, fault.what()),
                   ErrorKind::RunFailed};
    }
  }

  Result<std::vector<ProductSupport>> probeProducts() override {
    try {
      useDevice(m_device);
      const Result<CublasLt> library = loadCublasLt();
      if (!library) return library.error();
      return cuda::probeProducts(CublasLtSession(*library, m_stream.get()));
    } catch (const DeviceFault& fault) {
      return Error{fmt::format("{}: its GEMMs could not be probed. {}", m_info.id, fault.what()), ErrorKind::RunFailed};
    }
  }

 private:
  void noteOnce(const std::string& name, const std::string& value) {
    if (std::ranges::find(m_info.details, name, &std::pair<std::string, std::string>::first) == m_info.details.end())
      m_info.details.emplace_back(name, value);
  }

  /// Runs from here on tell it; they would be slower without a word.
  void noteInterpreted(const Error& refusal) {
    for (auto& [name, value] : m_info.details)
      if (name == kElementwiseCode && value.find("interpreted") == std::string::npos)
        value = "interpreted in part, which is slower: " + refusal.message;
  }

  void copy(void* to, const void* from, std::size_t sizeBytes, cudaMemcpyKind kind) {
    if (sizeBytes == 0) return;
    useDevice(m_device);
    if (!m_membership.expired()) synchronize();  // a copy of pages waits for the stream by itself, for ever if need be
    check(cudaMemcpyAsync(to, from, sizeBytes, kind, m_stream.get()), "copy a tensor");
    synchronize();
  }

  int m_device;
  DeviceInfo m_info;
  std::string m_busId = busIdOf(m_device);
  OwnedStream m_stream;
  OwnedStream m_copyStream;  // stream of transfers, and of collectives beside other work
  std::unique_ptr<Lanes> m_lanes = makeStreamLanes(m_stream.get());
  std::unique_ptr<PreparingCompiler> m_programs;
  std::unique_ptr<GemmLibrary> m_gemms;
  std::unique_ptr<GraphLibrary> m_graphs = makeCudnnGraphs(m_stream.get());
  AmaxesByPlan m_amaxes;
  DeviceContext m_context;
  std::shared_ptr<LaunchLog> m_log = std::make_shared<LaunchLog>();
  std::weak_ptr<NcclMembership> m_membership;  // of one of several ranks
  std::string m_rank;
};

}  // namespace

Result<std::shared_ptr<Backend>> makeCudaBackend(int device, const DeviceInfo& info) {
  if (Result<void> made = makeContext(info, device); !made) return made.error();
  try {
    return std::shared_ptr<Backend>(std::make_shared<CudaBackend>(device, info));
  } catch (const DeviceFault& fault) {
    return Error{fmt::format("Device '{}' cannot be opened: {}", info.id, fault.what()), ErrorKind::NoDevice};
  }
}

}  // namespace fuseline::cuda
