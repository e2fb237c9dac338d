// The JSON type of the project: key order is kept, because files are read by people and diffed by tools.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace fuseline {

using Json = nlohmann::ordered_json;

/// A member that is an object; an empty object if there is none.
inline Json objectAt(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) && json[name].is_object() ? json[name] : Json::object();
}

}  // namespace fuseline
