// Collects the kernels that the manifest lists.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/catalog.h"

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

const KernelDef* findKernel(std::string_view name) { return fuseline::findKernel(kernelCatalog(), name); }

}  // namespace fuseline::cpu
