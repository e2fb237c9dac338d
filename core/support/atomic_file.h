// Files that are replaced as a whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <filesystem>
#include <functional>
#include <ostream>

namespace fuseline {

/// Writes a file so that readers see the old content or the new one, never a part: into a temporary file next to it,
/// then a rename once the disk has it. A link stays a link, and permissions do not change. A target that is not a
/// regular file, such as /dev/stdout, is written directly.
/// Errors: the folder does not exist or cannot be written, the disk is full. No temporary file is left then.
Result<void> writeFileAtomically(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);

/// The file that writing to this name creates or replaces: a link is followed even if its target does not exist. For
/// links in a cycle, any of them.
std::filesystem::path writtenFile(std::filesystem::path path);

/// Whether writeFileAtomically() could begin, for callers with long work before it. Leaves the file unchanged.
/// Errors: the same, except for a full disk.
Result<void> checkWritable(const std::filesystem::path& path);

}  // namespace fuseline
