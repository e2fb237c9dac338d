// The files that this program needs to run elsewhere, and a name for exactly these.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fuseline::remote {

struct BundleFile {
  std::filesystem::path source;  // on this machine
  std::string name;              // in the bundle: "bin/fuseline"
  std::uintmax_t sizeBytes = 0;
};

struct Bundle {
  std::vector<BundleFile> files;
  std::string version;  // a hash of names and contents, in hexadecimal

  std::uintmax_t sizeBytes() const;
};

/// This program, the CUDA module where this build has one, and all libraries that are loaded, without those that come
/// with every system or with the driver. Errors: a file cannot be read.
Result<Bundle> ownBundle();

}  // namespace fuseline::remote
