// Refusals of a kernel catalog.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/kernel_catalog.h"

#include "core/support/text.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

class ViewKernel final : public Kernel {
 public:
  void run(std::span<std::byte* const>, std::byte*) override {}
};

}  // namespace

Verdict refuseKernel(std::string_view backend, std::string_view kernel, const std::vector<std::string>& catalog) {
  const std::string near = nearest(kernel, catalog);
  return Verdict::no(fmt::format("The {} backend has no kernel \"{}\"{}.", backend, kernel,
                                 near.empty() ? "" : fmt::format("; the nearest is \"{}\"", near)));
}

Verdict refusePass(std::string_view backend, const KernelQuery& query) {
  return Verdict::no(
      fmt::format("The {} kernel \"{}\" has no {} pass.", backend, query.kernel, phaseName(query.phase)));
}

Verdict refuseCopies(std::string_view backend, const KernelQuery& query) {
  return Verdict::no(fmt::format("The {} kernel \"{}\" does not {}.", backend, query.kernel,
                                 query.copies->isAmaxOnly() ? "find amaxes" : "write quantized copies"));
}

std::unique_ptr<Kernel> makeViewKernel() { return std::make_unique<ViewKernel>(); }

}  // namespace fuseline
