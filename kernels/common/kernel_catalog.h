// Lookups in the kernel catalog of a backend, and the refusals of steps that it has no kernel for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// backend: its name in sentences, such as "CPU".
Verdict refuseKernel(std::string_view backend, std::string_view kernel, const std::vector<std::string>& catalog);
Verdict refusePass(std::string_view backend, const KernelQuery& query);
/// For a query with copies.
Verdict refuseCopies(std::string_view backend, const KernelQuery& query);

/// A step whose outputs are views of its inputs.
std::unique_ptr<Kernel> makeViewKernel();

/// nullptr when there is none. KernelDef: the backend's.
template <class KernelDef>
const KernelDef* findKernel(const std::vector<KernelDef>& catalog, std::string_view name) {
  const auto found = std::ranges::find(catalog, name, &KernelDef::name);
  return found == catalog.end() ? nullptr : &*found;
}

/// Whether the catalog has a kernel for the query, apart from its copies.
template <class KernelDef>
Verdict supportsPlainStep(std::string_view backend, const std::vector<KernelDef>& catalog, const KernelQuery& query) {
  if (const KernelDef* const kernel = findKernel(catalog, query.kernel)) {
    const bool hasPass = std::ranges::find(kernel->phases, query.phase) != kernel->phases.end();
    return hasPass ? kernel->supports(query) : refusePass(backend, query);
  }
  std::vector<std::string> names;
  for (const KernelDef& kernel : catalog) names.push_back(kernel.name);
  return refuseKernel(backend, query.kernel, names);
}

/// KernelDef::supports of a kernel that takes every step that the planner gives it.
inline Verdict alwaysSupported(const KernelQuery& /*query*/) { return Verdict::yes(); }

/// KernelDef::compile of a kernel with a forward and a backward pass.
template <class Forward, class Backward>
auto byPhase(Forward forward, Backward backward) {
  return
      [=](const auto& request) { return request.step.phase == Phase::Forward ? forward(request) : backward(request); };
}

}  // namespace fuseline
