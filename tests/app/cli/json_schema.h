// The part of JSON Schema that `fuseline schema --of` uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <string>

namespace fuseline::testing {

/// Empty if `value` fits; else the JSON pointer of the first problem, and its description. Knows type, enum,
/// properties, required, additionalProperties, items and oneOf.
std::string schemaProblem(const Json& schema, const Json& value, const std::string& pointer = {});

}  // namespace fuseline::testing
