// Alternates sample operands of GEMMs, so that a launch does not find its own in the L2 cache, and records events
// around some launches. A step finds its operands there as it does in a plan.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemm_timer.h"

#include "kernels/cuda/gemm/gemm_sample.h"
#include "kernels/cuda/memory/arena.h"
#include "kernels/cuda/memory/cache_filler.h"
#include "kernels/cuda/stream/event_clock.h"
#include "kernels/cuda/support/check.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

namespace fuseline::cuda {

namespace {

/// cudaMalloc's alignment, for every operand.
constexpr std::size_t kOperandAlignment = 256;
/// Sets beyond this are of operands that are in the cache in a plan, too.
constexpr std::size_t kMaxSets = 16;
/// A sample of launches that are shorter than this is of several: events resolve about half a microsecond.
constexpr double kSampleNs = 50'000.0;
constexpr double kMaxLaunches = 8.0;
/// Before every sample: the host gets ahead with the launches.
constexpr std::chrono::microseconds kHeadStart{60};

std::size_t aligned(std::size_t sizeBytes) {
  return (sizeBytes + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
}

/// Several sets of operands, and a workspace.
class SampleMemory {
 public:
  SampleMemory(const GemmProblem& problem, std::size_t workspaceBytes, Stream stream)
      : m_sample(sampleOf(problem)),
        m_setBytes(setBytes(m_sample)),
        m_numSets(std::min(2 * l2CacheBytes() / m_setBytes + 1, kMaxSets)),
        m_arena(m_numSets * m_setBytes + workspaceBytes),
        m_stream(stream) {
    fillFirstSet();
    for (std::size_t set = 1; set < m_numSets; ++set) copy(setAt(set), setAt(0), m_setBytes, cudaMemcpyDeviceToDevice);
    check(cudaStreamSynchronize(m_stream), "fill memory for timing");
  }

  /// Pointers of the next set.
  GemmPointers next() {
    m_set = (m_set + 1) % m_numSets;
    std::byte* data = setAt(m_set);
    const auto take = [&](const SampleOperand& operand) {
      return std::exchange(data, data + aligned(operand.sizeBytes));
    };
    GemmPointers pointers;
    pointers.a = take(m_sample.a);
    pointers.b = take(m_sample.b);
    pointers.aScales = take(m_sample.aScales);
    pointers.bScales = take(m_sample.bScales);
    pointers.factors = take(m_sample.factors);
    pointers.bias = take(m_sample.bias);
    pointers.geluInput = take(m_sample.geluInput);
    pointers.addend = pointers.c = take(m_sample.c);
    pointers.cScale = reinterpret_cast<const float*>(take(m_sample.cScale));
    pointers.cAmax = reinterpret_cast<float*>(take(m_sample.cAmax));
    pointers.preActivation = take(m_sample.preActivation);
    pointers.biasGrad = take(m_sample.biasGrad);
    return pointers;
  }

  std::byte* workspace() const { return setAt(m_numSets); }

 private:
  /// In their order in memory.
  static std::array<const SampleOperand*, 12> operandsOf(const GemmSample& sample) {
    return {&sample.a,         &sample.b, &sample.aScales, &sample.bScales, &sample.factors,       &sample.bias,
            &sample.geluInput, &sample.c, &sample.cScale,  &sample.cAmax,   &sample.preActivation, &sample.biasGrad};
  }

  static std::size_t setBytes(const GemmSample& sample) {
    std::size_t bytes = 0;
    for (const SampleOperand* const operand : operandsOf(sample)) bytes += aligned(operand->sizeBytes);
    return bytes;
  }

  std::byte* setAt(std::size_t set) const { return m_arena.data() + set * m_setBytes; }

  void copy(std::byte* to, const std::byte* from, std::size_t sizeBytes, cudaMemcpyKind kind) const {
    check(cudaMemcpyAsync(to, from, sizeBytes, kind, m_stream), "fill memory for timing");
  }

  void fillFirstSet() const {
    std::byte* data = setAt(0);
    for (const SampleOperand* const operand : operandsOf(m_sample)) {
      fill(data, *operand);
      data += aligned(operand->sizeBytes);
    }
  }

  /// Uploads the pattern once, then repeatedly doubles the filled part.
  void fill(std::byte* data, const SampleOperand& operand) const {
    std::size_t done = std::min(operand.pattern.size(), operand.sizeBytes);
    if (done > 0) copy(data, operand.pattern.data(), done, cudaMemcpyHostToDevice);
    while (done < operand.sizeBytes) {
      const std::size_t more = std::min(done, operand.sizeBytes - done);
      copy(data + done, data, more, cudaMemcpyDeviceToDevice);
      done += more;
    }
  }

  GemmSample m_sample;
  std::size_t m_setBytes;
  std::size_t m_numSets;
  Arena m_arena;
  Stream m_stream;
  std::size_t m_set = 0;
};

/// Operands and workspace of a step.
class StepMemory {
 public:
  StepMemory(const TimedStep& step, Stream stream) : m_arena(sizeOf(step)) {
    check(cudaMemsetAsync(m_arena.data(), 0, sizeOf(step), stream), "fill memory for timing");
    std::byte* data = m_arena.data();
    for (const std::size_t bytes : step.operandBytes)
      m_operands.push_back(bytes > 0 ? std::exchange(data, data + aligned(bytes)) : nullptr);
    m_workspace = data;
  }
  Pointers operands() const { return m_operands; }
  std::byte* workspace() const { return m_workspace; }

 private:
  static std::size_t sizeOf(const TimedStep& step) {
    std::size_t bytes = *std::ranges::max_element(step.workspaceBytes);
    for (const std::size_t operand : step.operandBytes) bytes += aligned(operand);
    return bytes;
  }

  Arena m_arena;
  std::vector<std::byte*> m_operands;
  std::byte* m_workspace = nullptr;
};

class LaunchTimer final : public CandidateTimer {
 public:
  LaunchTimer(std::function<void(std::size_t candidate)> launch, Stream stream)
      : m_launch(std::move(launch)), m_stream(stream), m_clock(makeEventClock(selectedDevice(), m_stream, 2)) {}

  std::optional<double> timeNs(std::size_t candidate) override {
    load(candidate);
    const Clock::time_point begin = Clock::now();
    const int numLaunches = launchesOfASample();
    m_clock->takeHeadStart(kHeadStart);
    m_clock->mark(0);
    for (int i = 0; i < numLaunches; ++i) m_launch(candidate);
    m_clock->mark(1);
    check(cudaStreamSynchronize(m_stream), "run what is timed");
    const double launchNs = m_clock->nanosecondsBetween(0, 1) / numLaunches;
    m_shortestNs = std::min(m_shortestNs, launchNs);
    m_spent += Clock::now() - begin;
    return launchNs;
  }

  std::chrono::nanoseconds spent() const override { return m_spent; }

 private:
  using Clock = std::chrono::steady_clock;

  /// The first launch of a kernel brings its code to the GPU.
  void load(std::size_t candidate) {
    if (!m_loaded.insert(candidate).second) return;
    m_launch(candidate);
    check(cudaStreamSynchronize(m_stream), "run what is timed");
  }

  int launchesOfASample() const { return static_cast<int>(std::clamp(kSampleNs / m_shortestNs, 1.0, kMaxLaunches)); }

  std::function<void(std::size_t candidate)> m_launch;
  Stream m_stream;
  std::unique_ptr<DeviceClock> m_clock;
  double m_shortestNs = kSampleNs;
  std::set<std::size_t> m_loaded;
  Clock::duration m_spent{0};
};

}  // namespace

std::unique_ptr<CandidateTimer> makeGemmTimer(const GemmProblem& problem, std::size_t workspaceBytes, GemmLaunch launch,
                                              Stream stream) {
  const auto launchNext = [memory = std::make_shared<SampleMemory>(problem, workspaceBytes, stream),
                           launch = std::move(launch)](std::size_t candidate) {
    launch(candidate, memory->next(), memory->workspace());
  };
  return std::make_unique<LaunchTimer>(launchNext, stream);
}

std::unique_ptr<CandidateTimer> makeStepTimer(const TimedStep& step, Stream stream) {
  const auto launch = [memory = std::make_shared<StepMemory>(step, stream), launch = step.launch](std::size_t way) {
    launch(way, memory->operands(), memory->workspace());
  };
  return std::make_unique<LaunchTimer>(launch, stream);
}

}  // namespace fuseline::cuda
