// What every verb prints with --json, as JSON Schema (2020-12).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <string>
#include <utility>
#include <vector>

namespace fuseline::cli {

/// Verb and schema, in the order of the help.
std::vector<std::pair<std::string, Json>> outputSchemas();

}  // namespace fuseline::cli
