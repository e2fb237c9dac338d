// Collects the kernels that the manifest lists.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/catalog.h"

#include "core/support/text.h"
#include "kernels/cuda/stream/launch_count.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace kernels {
#define FUSELINE_CATALOG_ENTRY(name) KernelDef name();
#include "kernels/cuda/kernels.inc"
#undef FUSELINE_CATALOG_ENTRY
}  // namespace kernels

namespace {

/// A step whose outputs are views of its inputs.
class ViewKernel final : public Kernel {
 public:
  void run(std::span<std::byte* const>, std::byte*) override {}
};

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

Verdict unknownKernel(std::string_view name) {
  std::vector<std::string> names;
  for (const KernelDef& kernel : kernelCatalog()) names.push_back(kernel.name);
  const std::string near = nearest(name, names);
  return Verdict::no(fmt::format("The CUDA backend has no kernel \"{}\"{}.", name,
                                 near.empty() ? "" : fmt::format("; the nearest is \"{}\"", near)));
}

}  // namespace

const std::vector<KernelDef>& kernelCatalog() {
  static const std::vector<KernelDef> catalog = {
#define FUSELINE_CATALOG_ENTRY(name) kernels::name(),
#include "kernels/cuda/kernels.inc"
#undef FUSELINE_CATALOG_ENTRY
  };
  return catalog;
}

const KernelDef* findKernel(std::string_view name) {
  const auto& catalog = kernelCatalog();
  const auto found = std::ranges::find_if(catalog, [&](const KernelDef& kernel) { return kernel.name == name; });
  return found == catalog.end() ? nullptr : &*found;
}

Verdict supportsStep(const KernelQuery& query) {
  const KernelDef* kernel = findKernel(query.kernel);
  if (!kernel) return unknownKernel(query.kernel);
  if (std::ranges::find(kernel->phases, query.phase) == kernel->phases.end())
    return Verdict::no(fmt::format("The CUDA kernel \"{}\" has no {} pass.", query.kernel, phaseName(query.phase)));
  const Verdict verdict = kernel->supports(query);
  if (!verdict || !query.copies) return verdict;
  if (kernel->supportsCopies) return kernel->supportsCopies(query);
  return Verdict::no(fmt::format("The CUDA kernel \"{}\" does not {}.", query.kernel,
                                 query.copies->isAmaxOnly() ? "find amaxes" : "write quantized copies"));
}

Result<std::unique_ptr<Kernel>> compileStep(const CompileRequest& request) {
  const Step& step = request.step;
  if (step.isView) return std::unique_ptr<Kernel>(std::make_unique<ViewKernel>());
  const KernelQuery query{.graph = request.graph, .kernel = step.kernel, .phase = step.phase, .members = step.nodes};
  if (const Verdict verdict = supportsStep(query); !verdict) return Error{verdict.reason(), ErrorKind::RunFailed};
  Result<std::unique_ptr<Kernel>> kernel = findKernel(step.kernel)->compile(request);
  if (!kernel) return kernel.error();
  return std::unique_ptr<Kernel>(std::make_unique<CountedKernel>(std::move(*kernel)));
}

}  // namespace fuseline::cuda
