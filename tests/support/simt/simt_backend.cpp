// Host memory, the CUDA kernel catalog, and GEMMs in plain loops.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt/simt_backend.h"

#include "kernels/cuda/catalog.h"
#include "kernels/cuda/copy_cost.h"
#include "kernels/cuda/gemm/epilogue_passes.h"
#include "kernels/cuda/quantize/step_amaxes.h"
#include "kernels/cuda/stream/delay_launch.h"
#include "kernels/cuda/stream/lanes.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/simt/gpu_profiles.h"
#include "tests/support/simt/host_compiler.h"
#include "tests/support/simt/host_gemm.h"
#include "tests/support/simt/host_graphs.h"
#include "tests/support/simt/simt.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace fuseline::testing {

namespace {

/// Fresh memory of a GPU has arbitrary content: NaN in every format detects kernels that read unwritten memory.
constexpr int kPoison = 0xff;
constexpr std::size_t kAlignment = 256;
/// So few that small attentions take several passes: some heads, or some rows, at a time.
constexpr std::size_t kScoreBytes = 8 * 1024;

class HostMemory final : public DeviceMemory {
 public:
  explicit HostMemory(std::size_t sizeBytes)
      : m_sizeBytes(sizeBytes),
        m_data(static_cast<std::byte*>(std::aligned_alloc(kAlignment, (sizeBytes / kAlignment + 1) * kAlignment))) {
    std::memset(m_data.get(), kPoison, sizeBytes);
  }
  std::byte* data() override { return m_data.get(); }
  std::size_t sizeBytes() const override { return m_sizeBytes; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::size_t m_sizeBytes;
  std::unique_ptr<std::byte, Free> m_data;
};

class HostMoments final : public DeviceClock {
 public:
  explicit HostMoments(std::size_t numMoments) : m_moments(numMoments) {}
  void mark(std::size_t moment) override { m_moments.at(moment) = std::chrono::steady_clock::now(); }
  void markTransfers(std::size_t moment) override { mark(moment); }
  void takeHeadStart(std::chrono::nanoseconds duration) override { cuda::launchDelay(duration.count(), nullptr); }
  double nanosecondsBetween(std::size_t from, std::size_t to) override {
    return std::chrono::duration<double, std::nano>(m_moments.at(to) - m_moments.at(from)).count();
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> m_moments;
};

class HostRecording final : public RecordedLaunches {
 public:
  explicit HostRecording(std::vector<std::function<void()>> launches) : m_launches(std::move(launches)) {}
  void launch() override {
    for (const auto& launch : m_launches) launch();
  }

 private:
  std::vector<std::function<void()>> m_launches;
};

/// Sees what steps submit, now or when a recording is launched.
class HostTrace final : public DeviceTrace {
 public:
  void beginStep(std::size_t step) override {
    simt::setWrapper(
        [seen = m_seen, step](std::function<void()> work) { return watched(seen, step, std::move(work)); });
  }
  void endStep() override { simt::setWrapper({}); }
  void start() override {
    m_seen->activities.clear();
    m_seen->begin = Clock::now();
    m_seen->isOn = true;
  }
  std::vector<DeviceActivity> stop() override {
    m_seen->isOn = false;
    return m_seen->activities;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    bool isOn = false;
    Clock::time_point begin;
    std::vector<DeviceActivity> activities;
  };

  static double nanosecondsBetween(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::nano>(to - from).count();
  }

  static std::function<void()> watched(const std::shared_ptr<Seen>& seen, std::size_t step,
                                       std::function<void()> work) {
    return [seen, step, work = std::move(work)] {
      const Clock::time_point start = Clock::now();
      work();
      if (seen->isOn)
        seen->activities.push_back({.name = "work",
                                    .configuration = "on the host",
                                    .step = step,
                                    .startNs = nanosecondsBetween(seen->begin, start),
                                    .durationNs = nanosecondsBetween(start, Clock::now())});
    };
  }

  std::shared_ptr<Seen> m_seen = std::make_shared<Seen>();
};

/// A device may copy at any time between the beginning and the end: this one does so at the end, and until then the
/// target has content that must not be read.
class HostCopy final : public Transfer {
 public:
  HostCopy(std::span<std::byte> to, const std::byte* from) : m_to(to), m_from(from) {}
  void begin() override {
    simt::submit(nullptr, [to = m_to] { std::memset(to.data(), kPoison, to.size()); });
  }
  void end() override {
    simt::submit(nullptr, [to = m_to, from = m_from] { std::memcpy(to.data(), from, to.size()); });
  }

 private:
  std::span<std::byte> m_to;
  const std::byte* m_from;
};

void readBack(void* host, const std::byte* device, std::size_t sizeBytes) {
  if (simt::isRecording())
    throw std::runtime_error("The host reads values that the device computes, which a recording cannot wait for.");
  std::memcpy(host, device, sizeBytes);
}

class SimtLanes final : public cuda::Lanes {
 public:
  SimtLanes() {
    for (std::size_t i = 0; i < kCount; ++i)
      m_handles[i] = static_cast<cuda::Stream>(const_cast<void*>(m_streams.at(i)));
  }
  std::span<const cuda::Stream> streams() const override { return m_handles; }
  void fork(std::size_t count) override { m_streams.fork(count); }
  void join(std::size_t count) override { m_streams.join(count); }

 private:
  static constexpr std::size_t kCount = 3;
  simt::SideStreams m_streams{kCount};
  std::array<cuda::Stream, kCount> m_handles = {};
};

class SimtBackend final : public Backend {
 public:
  SimtBackend(cuda::ProgramCompiler* programs, ComputeCapability capability, int numMultiprocessors) {
    m_context.numMultiprocessors = numMultiprocessors;
    m_context.capability = capability;
    m_context.maxSharedBytes = simt::sharedBytesOf(capability);
    m_context.programs = programs;
    m_context.maxScoreBytes = kScoreBytes;
    m_context.readBack = readBack;
    m_context.allocate = [](std::size_t sizeBytes) { return std::make_unique<HostMemory>(sizeBytes); };
    m_context.amaxes = &m_amaxes;
    m_gemms = cuda::makeGemmsWithPasses(makeHostGemms(capability < ComputeCapability{10, 0}), m_context);
    m_context.gemms = m_gemms.get();
    m_context.graphs = m_graphs.get();
  }

  const DeviceInfo& device() const override { return m_device; }
  Verdict supports(const KernelQuery& query) const override { return cuda::supportsStep(query); }
  Saving extraCost(const Plan& plan, const Step& step) const override {
    return cuda::extraCostOf(plan, step, cuda::clusterLimitsOf(m_context.capability, m_context.maxSharedBytes));
  }

  Result<std::unique_ptr<Kernel>> compile(const Graph& graph, const Plan& plan, const Step& step,
                                          const CompileOptions& options) override {
    return cuda::compileStep({{graph, plan, step, options}, m_context});
  }

  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t sizeBytes) override {
    return std::unique_ptr<DeviceMemory>(std::make_unique<HostMemory>(sizeBytes));
  }

  void upload(std::byte* device, std::span<const std::byte> host) override {
    if (!host.empty()) std::memcpy(device, host.data(), host.size());
  }
  void download(std::span<std::byte> host, const std::byte* device) override {
    if (!host.empty()) std::memcpy(host.data(), device, host.size());
  }
  std::unique_ptr<Transfer> makeTransfer(std::span<std::byte> to, const std::byte* from, TransferDirection) override {
    return std::make_unique<HostCopy>(to, from);
  }
  void synchronize() override {}
  std::unique_ptr<DeviceClock> makeClock(std::size_t numMoments) override {
    return std::make_unique<HostMoments>(numMoments);
  }
  Result<std::unique_ptr<DeviceTrace>> makeTrace() override {
    return std::unique_ptr<DeviceTrace>(std::make_unique<HostTrace>());
  }
  Result<std::unique_ptr<RecordedLaunches>> record(const std::function<Result<void>()>& launches) override {
    Result<void> launched;
    auto recorded = simt::record([&] { launched = launches(); });
    if (!launched) return launched.error();
    return std::unique_ptr<RecordedLaunches>(std::make_unique<HostRecording>(std::move(recorded)));
  }

 private:
  DeviceInfo m_device{.id = "simt", .name = "SIMT harness on the host", .architecture = "simt"};
  std::unique_ptr<cuda::GemmLibrary> m_gemms;
  std::unique_ptr<cuda::GraphLibrary> m_graphs = makeHostGraphs();
  SimtLanes m_lanes;
  cuda::AmaxesByPlan m_amaxes;
  cuda::DeviceContext m_context{.lanes = &m_lanes};
};

}  // namespace

Result<std::shared_ptr<Backend>> cudaTestBackend() {
  static const std::shared_ptr<Backend> backend = makeSimtBackend();
  return backend;
}

Result<std::shared_ptr<Backend>> compilingCudaTestBackend() {
  static const std::unique_ptr<cuda::ProgramCompiler> compiler = makeHostCompiler();
  static const std::shared_ptr<Backend> backend = makeSimtBackend(compiler.get());
  return backend;
}

bool multipliesExactly() {
  static const bool isExact = std::getenv("FUSELINE_PRODUCTS_OF_A_GPU") == nullptr;
  return isExact;
}

std::shared_ptr<Backend> makeSimtBackend(cuda::ProgramCompiler* programs, ComputeCapability capability,
                                         int numMultiprocessors) {
  return std::make_shared<SimtBackend>(programs, capability, numMultiprocessors);
}

}  // namespace fuseline::testing
