// Answers from the kernel catalog; gives memory; sets the number of threads around every kernel.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_backend.h"

#include "kernels/cpu/catalog.h"
#include "kernels/cpu/gemm/decoded_operands.h"
#include "kernels/cpu/machine/cache_filler.h"
#include "kernels/cpu/machine/cpu_info.h"
#include "kernels/cpu/machine/cpu_memory.h"
#include "kernels/cpu/machine/peaks.h"
#include "kernels/cpu/quantize/row_copies.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include <fmt/format.h>
#include <omp.h>

namespace fuseline::cpu {

namespace {

/// OpenMP keeps the number of threads per calling thread, and the caller may be any thread.
class ThreadedKernel final : public Kernel {
 public:
  ThreadedKernel(std::unique_ptr<Kernel> kernel, int threads) : m_kernel(std::move(kernel)), m_threads(threads) {}
  std::size_t workspaceBytes() const override { return m_kernel->workspaceBytes(); }
  void run(std::span<std::byte* const> operands, std::byte* workspace) override {
    if (omp_get_max_threads() != m_threads) omp_set_num_threads(m_threads);
    m_kernel->run(operands, workspace);
  }

 private:
  std::unique_ptr<Kernel> m_kernel;
  int m_threads;
};

/// Kernels of other backends that this one does not have, and why.
struct Refusal {
  std::string_view kernel;
  const char* reason;
};
/// Measured 2026-11 on a loaded 2-core server, 128 to 4096 rows, bf16 and f32: 0.85 to 1.01 times as fast, and nowhere
/// clearly faster.
constexpr Refusal kRefusals[] = {
    {"linear_backward_activation",
     "No gain on the CPU: applying the activation gradient per GEMM panel was measured no faster than a separate "
     "pass."},
};

CpuSettings settingsFrom(const CpuOptions& options) {
  return {.threads = options.threads > 0 ? options.threads : defaultThreads(),
          .isBf16GemmNative = options.bf16Gemm == CpuOptions::Bf16Gemm::Auto && hasNativeBf16Gemm()};
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : m_options(options), m_settings(settingsFrom(options)), m_device(describeCpu(m_settings.threads)) {}

  const DeviceInfo& device() const override { return m_device; }

  Verdict supports(const KernelQuery& query) const override {
    const auto refusal = std::ranges::find(kRefusals, query.kernel, &Refusal::kernel);
    if (refusal != std::end(kRefusals)) return Verdict::no(refusal->reason);
    const Verdict verdict = supportsPlainStep("CPU", kernelCatalog(), query);
    if (!verdict || !query.copies) return verdict;
    const KernelDef& kernel = *findKernel(query.kernel);
    const bool writesCopies = kernel.writesCopies && (query.phase == Phase::Forward || kernel.writesGradientCopies);
    return writesCopies ? canMakeRowCopies(query) : refuseCopies("CPU", query);
  }

  Result<std::unique_ptr<Kernel>> compile(const Graph& graph, const Plan& plan, const Step& step,
                                          const CompileOptions& options) override {
    if (step.isView) return makeViewKernel();
    const KernelQuery query{.graph = graph, .kernel = step.kernel, .phase = step.phase, .members = step.nodes};
    if (const Verdict verdict = supports(query); !verdict) return Error{verdict.reason(), ErrorKind::RunFailed};
    return compileSupported({{graph, plan, step, options}, m_settings});
  }

  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t sizeBytes) override {
    return allocateCpuMemory(sizeBytes);
  }

  bool hasHostMemory() const override { return true; }

  std::shared_ptr<Backend> shareOf(int ranks) override {
    CpuOptions options = m_options;
    options.threads = std::max(1, m_settings.threads / ranks);
    return makeCpuBackend(options);
  }

  void upload(std::byte* device, std::span<const std::byte> host) override {
    if (!host.empty()) std::memcpy(device, host.data(), host.size());
  }

  void download(std::span<std::byte> host, const std::byte* device) override {
    if (!host.empty()) std::memcpy(host.data(), device, host.size());
  }

  void synchronize() override {}  // run() returns when the work is done

  Result<std::unique_ptr<CacheFiller>> makeCacheFiller() override { return cpu::makeCacheFiller(m_settings.threads); }

  Result<DevicePeaks> measurePeaks() override { return cpu::measurePeaks(m_settings.threads); }

 private:
  Result<std::unique_ptr<Kernel>> compileSupported(const CompileRequest& request) const {
    try {
      Result<std::unique_ptr<Kernel>> kernel = compileDecoding(request);
      if (!kernel) return kernel.error();
      return std::unique_ptr<Kernel>(std::make_unique<ThreadedKernel>(std::move(*kernel), m_settings.threads));
    } catch (const std::exception& failure) {  // oneDNN reports by exceptions
      return Error{fmt::format("cpu: step \"{}\" could not be prepared: {}.", request.step.name, failure.what()),
                   ErrorKind::RunFailed};
    }
  }

  static Result<std::unique_ptr<Kernel>> compileDecoding(const CompileRequest& request) {
    const KernelDef& definition = *findKernel(request.step.kernel);
    if (definition.readsCodes) return definition.compile(request);
    const std::shared_ptr<DecodedOperands> decoded = decodedOperands(request, definition);
    CompileRequest inner = request;
    if (decoded) inner.decoded = decoded->bindings;
    Result<std::unique_ptr<Kernel>> kernel = definition.compile(inner);
    if (!kernel || !decoded) return kernel;
    return decodingKernel(std::move(*kernel), decoded, request);
  }

  CpuOptions m_options;
  CpuSettings m_settings;
  DeviceInfo m_device;
};

}  // namespace

std::shared_ptr<Backend> makeCpuBackend(const CpuOptions& options) { return std::make_shared<CpuBackend>(options); }

}  // namespace fuseline::cpu
