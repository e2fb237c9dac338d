// Collects the kernels that the manifest lists.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/catalog.h"

#include "kernels/cuda/stream/launch_count.h"

namespace fuseline::cuda {

namespace kernels {
#define FUSELINE_CATALOG_ENTRY(name) KernelDef name();
#include "kernels/cuda/kernels.inc"
#undef FUSELINE_CATALOG_ENTRY
}  // namespace kernels

namespace {

/// Counts the launches of the kernel it wraps.
class CountedKernel final : public Kernel {
 public:
  explicit CountedKernel(std::unique_ptr<Kernel> kernel) : m_kernel(std::move(kernel)) {}
  std::size_t workspaceBytes() const override { return m_kernel->workspaceBytes(); }
  std::vector<std::string> ways() const override { return m_kernel->ways(); }
  std::int64_t launches() const override { return m_launches; }
  void run(std::span<std::byte* const> operands, std::byte* workspace) override {
    const std::int64_t before = numLaunched;
    m_kernel->run(operands, workspace);
    m_launches = numLaunched - before;
  }

 private:
  std::unique_ptr<Kernel> m_kernel;
  std::int64_t m_launches = 0;
};

}  // namespace

const std::vector<KernelDef>& kernelCatalog() {
  static const std::vector<KernelDef> catalog = {
#define FUSELINE_CATALOG_ENTRY(name) kernels::name(),
#include "kernels/cuda/kernels.inc"
#undef FUSELINE_CATALOG_ENTRY
  };
  return catalog;
}

const KernelDef* findKernel(std::string_view name) { return fuseline::findKernel(kernelCatalog(), name); }

Verdict supportsStep(const KernelQuery& query) {
  const Verdict verdict = supportsPlainStep("CUDA", kernelCatalog(), query);
  if (!verdict || !query.copies) return verdict;
  const auto& supportsCopies = findKernel(query.kernel)->supportsCopies;
  return supportsCopies ? supportsCopies(query) : refuseCopies("CUDA", query);
}

Result<std::unique_ptr<Kernel>> compileStep(const CompileRequest& request) {
  const Step& step = request.step;
  if (step.isView) return makeViewKernel();
  const KernelQuery query{.graph = request.graph, .kernel = step.kernel, .phase = step.phase, .members = step.nodes};
  if (const Verdict verdict = supportsStep(query); !verdict) return Error{verdict.reason(), ErrorKind::RunFailed};
  Result<std::unique_ptr<Kernel>> kernel = findKernel(step.kernel)->compile(request);
  if (!kernel) return kernel.error();
  return std::unique_ptr<Kernel>(std::make_unique<CountedKernel>(std::move(*kernel)));
}

}  // namespace fuseline::cuda
