// Files that a verb makes: none is replaced unasked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <string>
#include <utility>
#include <vector>

namespace fuseline::cli {

/// Errors (Usage): the file exists, and --force was not given.
Result<void> checkFree(const std::string& file, bool replaces);

/// An option and the file that it names; an empty one names none.
using NamedFile = std::pair<std::string, std::string>;
/// Errors (Usage): two options name one file, of which the later would be left.
Result<void> checkDifferent(const std::vector<NamedFile>& files);

/// Makes the folder that an option names, with those above it; an empty name makes none. Before anything is measured:
/// nothing is lost where it cannot be made.
Result<void> makeFolder(const std::string& option, const std::string& folder);

}  // namespace fuseline::cli
