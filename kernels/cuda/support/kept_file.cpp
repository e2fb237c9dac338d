// Reads and replaces kept files as a whole.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/support/kept_file.h"

#include "core/support/atomic_file.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <system_error>

namespace fuseline::cuda {

namespace fs = std::filesystem;

std::string readKept(const fs::path& path) {
  constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{16} << 20;  // one that has grown beyond it is begun anew
  std::error_code failure;
  if (const std::uintmax_t size = fs::file_size(path, failure); failure || size > kMaxFileBytes) return {};
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeKept(const fs::path& path, std::string_view content) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  (void)writeFileAtomically(path, [&](std::ostream& out) { out << content; });
}

}  // namespace fuseline::cuda
