// The JSON type of the project: key order is kept, because files are read by people and diffed by tools.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace fuseline {

using Json = nlohmann::ordered_json;

}  // namespace fuseline
