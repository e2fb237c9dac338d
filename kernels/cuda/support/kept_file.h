// Files in the user's cache folder. Nothing here fails: an unreadable file counts as missing, and a file that cannot be
// written stays unchanged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fuseline::cuda {

/// Empty if there is no such file, or if it is larger than any file kept here.
std::string readKept(const std::filesystem::path& path);
/// Creates its folder.
void writeKept(const std::filesystem::path& path, std::string_view content);

}  // namespace fuseline::cuda
