// The reference device with a test's function before every kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace fuseline::testing {

/// beforeRun: called before the kernel of every step; the kernel throws its exceptions.
class WrappedBackend : public Backend {
 public:
  explicit WrappedBackend(std::function<void(const Step&)> beforeRun) : m_beforeRun(std::move(beforeRun)) {}

  const DeviceInfo& device() const override { return m_inner->device(); }
  Verdict supports(const KernelQuery& query) const override { return m_inner->supports(query); }
  Saving extraCost(const Plan& plan, const Step& step) const override { return m_inner->extraCost(plan, step); }
  Result<std::unique_ptr<Kernel>> compile(const Graph& graph, const Plan& plan, const Step& step,
                                          const CompileOptions& options) override {
    Result<std::unique_ptr<Kernel>> kernel = m_inner->compile(graph, plan, step, options);
    return std::unique_ptr<Kernel>(std::make_unique<WrappedKernel>(std::move(*kernel), step, m_beforeRun));
  }
  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t sizeBytes) override {
    return m_inner->allocate(sizeBytes);
  }
  void upload(std::byte* device, std::span<const std::byte> host) override { m_inner->upload(device, host); }
  void download(std::span<std::byte> host, const std::byte* device) override { m_inner->download(host, device); }
  void synchronize() override {}

 private:
  class WrappedKernel : public Kernel {
   public:
    WrappedKernel(std::unique_ptr<Kernel> inner, const Step& step, const std::function<void(const Step&)>& beforeRun)
        : m_inner(std::move(inner)), m_step(step), m_beforeRun(beforeRun) {}
    void run(std::span<std::byte* const> operands, std::byte* workspace) override {
      m_beforeRun(m_step);
      m_inner->run(operands, workspace);
    }

   private:
    std::unique_ptr<Kernel> m_inner;
    const Step& m_step;
    const std::function<void(const Step&)>& m_beforeRun;
  };

  std::shared_ptr<Backend> m_inner = makeReferenceBackend();
  std::function<void(const Step&)> m_beforeRun;
};

/// Has its own clock, on which a step takes its index in nanoseconds.
class ClockedBackend : public WrappedBackend {
 public:
  ClockedBackend() : WrappedBackend([](const Step&) {}) {}
  std::unique_ptr<DeviceClock> makeClock(std::size_t) override { return std::make_unique<Moments>(); }

 private:
  class Moments : public DeviceClock {
   public:
    void mark(std::size_t) override {}
    void markTransfers(std::size_t) override {}
    void takeHeadStart(std::chrono::nanoseconds) override {}
    double nanosecondsBetween(std::size_t, std::size_t to) override { return static_cast<double>(to); }
  };
};

}  // namespace fuseline::testing
