// Collects the kernels that the manifest lists.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/catalog.h"

#include <algorithm>

namespace fuseline::cpu {

namespace kernels {
#define FUSELINE_CATALOG_ENTRY(name) KernelDef name();
#include "kernels/cpu/kernels.inc"
#undef FUSELINE_CATALOG_ENTRY
}  // namespace kernels

const std::vector<KernelDef>& kernelCatalog() {
  static const std::vector<KernelDef> catalog = {
#define FUSELINE_CATALOG_ENTRY(name) kernels::name(),
#include "kernels/cpu/kernels.inc"
#undef FUSELINE_CATALOG_ENTRY
  };
  return catalog;
}

const KernelDef* findKernel(std::string_view name) {
  const auto& catalog = kernelCatalog();
  const auto found = std::ranges::find_if(catalog, [&](const KernelDef& kernel) { return kernel.name == name; });
  return found == catalog.end() ? nullptr : &*found;
}

}  // namespace fuseline::cpu
