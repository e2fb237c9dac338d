// Files that a verb makes: none is replaced unasked, and none is a file that it reads.
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

/// The files of one call of a verb.
struct VerbFiles {
  std::vector<NamedFile> read;
  std::vector<NamedFile> written;
};

/// Errors (Usage): two options write one file, of which the later would be left; a file that is read would be written,
/// also with --force.
Result<void> checkDifferent(const VerbFiles& files);
/// Errors (Usage): as checkDifferent() and checkFree(). For the verb's first line, before anything is measured.
Result<void> checkOutputs(const VerbFiles& files, bool replaces);

/// Makes the folder that an option names, with those above it; an empty name makes none. Before anything is measured:
/// nothing is lost where it cannot be made.
Result<void> makeFolder(const std::string& option, const std::string& folder);

}  // namespace fuseline::cli
