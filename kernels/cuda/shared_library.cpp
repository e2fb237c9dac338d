// Looks where the dynamic linker looks, then in the toolkit's own folders.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/shared_library.h"

#include <cstdlib>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda {

Result<void*> openLibrary(const std::string& fileName) {
  std::vector<std::string> paths = {fileName};
  if (const char* const toolkit = std::getenv("CUDA_PATH"))
    paths.push_back(fmt::format("{}/lib64/{}", toolkit, fileName));
  paths.push_back("/usr/local/cuda/lib64/" + fileName);
  std::string firstProblem;
  for (const std::string& path : paths) {
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* const problem = dlerror();
    if (firstProblem.empty()) firstProblem = problem ? problem : "no reason given";
  }
  return Error{fmt::format("{} does not load: {}. Install NVIDIA's CUDA libraries of this version, or name their "
                           "folder in LD_LIBRARY_PATH.",
                           fileName, firstProblem),
               ErrorKind::RunFailed};
}

Error missingFunction(const std::string& fileName, const std::string& function, int major) {
  return {fmt::format("{} has no function {}; it is not that of CUDA {}. Install NVIDIA's CUDA libraries of that "
                      "version.",
                      fileName, function, major),
          ErrorKind::RunFailed};
}

}  // namespace fuseline::cuda
