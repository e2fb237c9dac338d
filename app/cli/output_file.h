// Files that a verb makes: none is replaced unasked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <string>

namespace fuseline::cli {

/// Errors (Usage): the file exists, and --force was not given.
Result<void> checkFree(const std::string& file, bool replaces);

/// Makes the folder that an option names, with those above it; an empty name makes none. Before anything is measured:
/// nothing is lost where it cannot be made.
Result<void> makeFolder(const std::string& option, const std::string& folder);

}  // namespace fuseline::cli
