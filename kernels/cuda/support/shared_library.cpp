// Looks where the dynamic linker looks, then in the toolkits' own folders.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/support/shared_library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

Result<void*> openFirst(const std::vector<std::string>& paths, const std::string& fileName) {
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

/// "site-packages/nvidia/cu13/lib" and those of cuDNN and NCCL, of every Python in an environment.
std::vector<std::string> packageFolders(const std::filesystem::path& environment, int major) {
  std::vector<std::string> folders;
  std::error_code ignored;
  for (const auto& python : std::filesystem::directory_iterator(environment / "lib", ignored))
    if (python.path().filename().string().starts_with("python"))
      for (const std::string& package : {fmt::format("cu{}", major), std::string("cudnn"), std::string("nccl")})
        for (const char* const packages : {"site-packages", "dist-packages"})  // Debian's pip uses the second one
          folders.push_back(python.path() / fmt::format("{}/nvidia/{}/lib", packages, package));
  return folders;
}

std::vector<std::string> placesOf(const std::string& fileName) {
  std::vector<std::string> paths = {fileName};
  for (const std::string& folder : toolkitFolders(std::getenv, CUDART_VERSION / 1000))
    paths.push_back(fmt::format("{}/{}", folder, fileName));
  return paths;
}

}  // namespace

std::vector<std::string> toolkitFolders(const std::function<const char*(const char*)>& environment, int major) {
  std::vector<std::string> toolkits;
  for (const char* const name : {"CUDA_PATH", "CUDA_HOME"})
    if (const char* const toolkit = environment(name)) toolkits.emplace_back(toolkit);
  toolkits.emplace_back("/usr/local/cuda");
  toolkits.push_back(fmt::format("/usr/local/cuda-{}", major));
  std::vector<std::string> folders;
  for (const std::string& toolkit : toolkits)
    for (const char* const folder : {"lib64", "extras/CUPTI/lib64"})
      folders.push_back(fmt::format("{}/{}", toolkit, folder));
  for (const char* const name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* const python = environment(name))
      std::ranges::copy(packageFolders(python, major), std::back_inserter(folders));
  if (const char* const home = environment("HOME"))
    std::ranges::copy(packageFolders(std::filesystem::path(home) / ".local", major), std::back_inserter(folders));
  std::ranges::copy(packageFolders("/usr/local", major), std::back_inserter(folders));
  return folders;
}

Result<void*> openLibrary(const std::string& fileName) { return openFirst(placesOf(fileName), fileName); }

std::filesystem::path folderOf(const void* function) {
  Dl_info library{};
  const bool isFound = dladdr(function, &library) != 0 && library.dli_fname;
  return isFound ? std::filesystem::path(library.dli_fname).parent_path() : std::filesystem::path();
}

Result<void*> openBeside(const void* function, const std::string& fileName) {
  std::vector<std::string> paths = placesOf(fileName);
  if (const std::filesystem::path folder = folderOf(function); !folder.empty())
    paths.insert(paths.begin(), (folder / fileName).string());
  return openFirst(paths, fileName);
}

Error missingFunction(const std::string& fileName, const std::string& function, int major) {
  return {fmt::format("{} has no function {}; it is not that of CUDA {}. Install NVIDIA's CUDA libraries of that "
                      "version.",
                      fileName, function, major),
          ErrorKind::RunFailed};
}

}  // namespace fuseline::cuda
