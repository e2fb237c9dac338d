// Asks the dynamic loader: it knows the libraries of a build tree and those of an installation.
// SPDX-License-Identifier: Apache-2.0
#include "app/remote/bundle.h"

#include "core/support/hash.h"
#include "kernels/cuda/module.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

namespace fuseline::remote {

namespace {

namespace fs = std::filesystem;

/// As resources/cmake/BundleLibraries.cmake leaves out: the C library must be of one version, and the driver is that of
/// the machine.
bool comesWithTheSystem(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kBeginnings = {
      "ld-linux",     "linux-vdso", "libc.so",   "libm.so",   "libdl.so",   "librt.so",   "libpthread.so",
      "libresolv.so", "libutil.so", "libanl.so", "libnsl.so", "libmvec.so", "libcuda.so", "libnvidia"};
  return std::ranges::any_of(kBeginnings, [&](std::string_view each) { return name.starts_with(each); });
}

int addLibrary(dl_phdr_info* info, std::size_t /*size*/, void* paths) {
  const fs::path path = info->dlpi_name;
  if (path.is_absolute() && !comesWithTheSystem(path.filename().string()))
    static_cast<std::vector<fs::path>*>(paths)->push_back(path);
  return 0;
}

std::vector<fs::path> loadedLibraries() {
  std::vector<fs::path> paths;
  dl_iterate_phdr(addLibrary, &paths);
  return paths;
}

/// As fnv1a64, eight bytes at a time: a bundle has 60 MB, and every connection hashes it.
std::uint64_t hashOf(std::string_view bytes) {
  std::uint64_t hash = fnv1a64(bytes.substr(0, bytes.size() % sizeof(std::uint64_t)));
  for (std::size_t at = bytes.size() % sizeof hash; at < bytes.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29u;
  }
  return hash;
}

Result<std::string> contentsOf(const fs::path& path) {
  std::error_code problem;
  const std::uintmax_t size = fs::file_size(path, problem);
  std::ifstream file(path, std::ios::binary);
  std::string text(problem ? 0 : size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file || text.empty())
    return Error{
        fmt::format("{}: the file cannot be read, so the program cannot be copied. Reinstall Fuseline.", path.string()),
        ErrorKind::RunFailed};
  return text;
}

}  // namespace

std::uintmax_t Bundle::sizeBytes() const {
  std::uintmax_t sum = 0;
  for (const BundleFile& file : files) sum += file.sizeBytes;
  return sum;
}

Result<Bundle> ownBundle() {
  std::error_code problem;
  const fs::path program = fs::read_symlink("/proc/self/exe", problem);
  Bundle bundle{.files = {{program, "bin/fuseline"}}};
  if (const fs::path module = program.parent_path() / cuda::kModulePath; fs::exists(module, problem))
    bundle.files.push_back({module, "lib/fuseline/" + module.filename().string()});
  for (const fs::path& library : loadedLibraries())
    if (library.filename() != fs::path(cuda::kModulePath).filename())
      bundle.files.push_back({library, "lib/" + library.filename().string()});
  std::string hashes;
  for (BundleFile& file : bundle.files) {
    const Result<std::string> contents = contentsOf(file.source);
    if (!contents) return contents.error();
    file.sizeBytes = contents->size();
    hashes += fmt::format("{} {:016x}\n", file.name, hashOf(*contents));
  }
  bundle.version = fmt::format("{:016x}", fnv1a64(hashes));
  return bundle;
}

}  // namespace fuseline::remote
