// The first GPU, through the CUDA module as programs load it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/module.h"
#include "tests/support/cuda_test_backend.h"

#include <dlfcn.h>

#include <filesystem>

#include <fmt/format.h>

namespace fuseline::testing {

namespace {

/// The module stays loaded, and its registry alive, as long as the program runs.
Result<std::shared_ptr<Backend>> openFirstGpu() {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / cuda::kModulePath;
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) return Error{fmt::format("The CUDA module does not load: {}.", dlerror()), ErrorKind::NoDevice};
  auto* const create = reinterpret_cast<cuda::CreateRegistry*>(dlsym(module, cuda::kCreateRegistrySymbol));
  if (!create) return Error{"The CUDA module has no entry point for its registry.", ErrorKind::NoDevice};
  static const BackendRegistry* const registry = create();
  return registry->open("cuda");
}

}  // namespace

Result<std::shared_ptr<Backend>> cudaTestBackend() {
  // Never closed: at the program's end the libraries that it was opened with are gone before it.
  static const auto& backend = *new Result<std::shared_ptr<Backend>>(openFirstGpu());
  return backend;
}

Result<std::shared_ptr<Backend>> compilingCudaTestBackend() { return cudaTestBackend(); }

bool multipliesExactly() { return false; }

}  // namespace fuseline::testing
