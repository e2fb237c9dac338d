// Run files, "*.fuserun": writing and reading measurements. They are also read from exported pages that show them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <filesystem>

namespace fuseline {

/// Loads a run file, or an exported page of one.
/// Errors, with the path: the file cannot be read, is no run, or is from a newer program.
Result<RunRecord> loadRunRecord(const std::filesystem::path& path);

/// As a whole or not at all. Bytes that are not UTF-8 are replaced. Errors: as writeFileAtomically().
Result<void> saveRunRecord(const RunRecord& record, const std::filesystem::path& path);

/// Whether the file's content identifies it as a run, independent of its name. Reads only its beginning.
bool holdsRun(const std::filesystem::path& path);

}  // namespace fuseline
