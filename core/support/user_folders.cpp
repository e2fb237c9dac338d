// The folders of the XDG Base Directory Specification.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/user_folders.h"

namespace fuseline {

namespace {

/// Relative paths are to be ignored, says the specification.
std::filesystem::path absolutePath(const char* text) {
  std::filesystem::path path = text ? text : "";
  return path.is_absolute() ? path : std::filesystem::path();
}

}  // namespace

std::filesystem::path userCacheFolder(const Environment& environment) {
  if (const auto cache = absolutePath(environment("XDG_CACHE_HOME")); !cache.empty()) return cache / "fuseline";
  if (const auto home = absolutePath(environment("HOME")); !home.empty()) return home / ".cache" / "fuseline";
  return {};
}

}  // namespace fuseline
