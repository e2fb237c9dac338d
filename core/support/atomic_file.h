// Files that are replaced as a whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <filesystem>
#include <functional>
#include <ostream>

namespace fuseline {

/// Writes a file so that readers see the old content or the new one, never a part: into a temporary file beside it,
/// then a rename once the disk has it. A link stays one, and permissions stay what they were. Something that is no
/// regular file, such as /dev/stdout, is written directly.
/// Errors: the folder does not exist or cannot be written, the disk is full. No temporary file is left then.
Result<void> writeFileAtomically(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);

/// The file that writing to this name makes or replaces: a link is followed, be its end there or not. Of links in a
/// ring any.
std::filesystem::path writtenFile(std::filesystem::path path);

/// Whether writeFileAtomically() could begin, for who has long work before it. Leaves the file as it is.
/// Errors: as there, but for a disk that is full.
Result<void> checkWritable(const std::filesystem::path& path);

}  // namespace fuseline
