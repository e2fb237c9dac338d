// Folders for data that programs can recreate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

namespace fuseline {

/// The value of an environment variable, or nullptr.
using Environment = std::function<const char*(const char* name)>;

/// $XDG_CACHE_HOME/fuseline, else $HOME/.cache/fuseline; empty when neither is an absolute path. It need not exist.
/// Source: XDG Base Directory Specification 0.8.
std::filesystem::path userCacheFolder(const Environment& environment);

}  // namespace fuseline
