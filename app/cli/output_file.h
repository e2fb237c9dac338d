// Files that a verb makes: none is replaced unasked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <string>

namespace fuseline::cli {

/// Errors (Usage): the file exists, and --force was not given.
Result<void> checkFree(const std::string& file, bool replaces);

}  // namespace fuseline::cli
