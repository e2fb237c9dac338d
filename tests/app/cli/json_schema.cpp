// Checks a value keyword by keyword.
// SPDX-License-Identifier: Apache-2.0
#include "tests/app/cli/json_schema.h"

#include <algorithm>

namespace fuseline::testing {

namespace {

bool isOfType(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return type == "null" && value.is_null();
}

bool hasRightType(const Json& schema, const Json& value) {
  if (!schema.contains("type")) return true;
  const Json& type = schema["type"];
  if (type.is_string()) return isOfType(value, type);
  return std::ranges::any_of(type, [&](const Json& one) { return isOfType(value, one); });
}

std::string objectProblem(const Json& schema, const Json& value, const std::string& pointer) {
  for (const Json& name : schema.value("required", Json::array()))
    if (!value.contains(name.get<std::string>())) return pointer + "/" + name.get<std::string>() + ": missing";
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, item] : value.items()) {
    const std::string at = pointer + "/" + name;
    const Json inner = properties.contains(name) ? properties[name] : schema.value("additionalProperties", Json(true));
    if (inner == false) return at + ": not in the schema";
    if (!inner.is_object()) continue;
    if (std::string problem = schemaProblem(inner, item, at); !problem.empty()) return problem;
  }
  return {};
}

std::string arrayProblem(const Json& schema, const Json& value, const std::string& pointer) {
  if (!schema.contains("items")) return {};
  for (std::size_t i = 0; i < value.size(); ++i)
    if (std::string problem = schemaProblem(schema["items"], value[i], pointer + "/" + std::to_string(i));
        !problem.empty())
      return problem;
  return {};
}

}  // namespace

std::string schemaProblem(const Json& schema, const Json& value, const std::string& pointer) {
  if (!hasRightType(schema, value)) return pointer + ": expected " + schema["type"].dump() + ", found " + value.dump();
  if (schema.contains("enum") && std::ranges::count(schema["enum"], value) == 0)
    return pointer + ": " + value.dump() + " is none of " + schema["enum"].dump();
  if (schema.contains("oneOf")) {
    const auto fits = std::ranges::count_if(
        schema["oneOf"], [&](const Json& one) { return schemaProblem(one, value, pointer).empty(); });
    if (fits != 1) return pointer + ": fits " + std::to_string(fits) + " alternatives";
  }
  if (value.is_object()) return objectProblem(schema, value, pointer);
  if (value.is_array()) return arrayProblem(schema, value, pointer);
  return {};
}

}  // namespace fuseline::testing
