// Diagnostics of a pipeline file as JSON, and whether a verb may write the file anew.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "core/support/json.h"
#include "core/support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace fuseline::cli {

Json diagnosticsJson(const std::vector<Diagnostic>& diagnostics);
Json diagnosticsSchema();

/// `done`: "repaired". Errors: parts of the file could not be read, and would be lost where it is written.
Result<void> checkReadable(const LoadedDocument& loaded, const std::string& file, std::string_view done);

}  // namespace fuseline::cli
