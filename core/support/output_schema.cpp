// Builds JSON Schemas.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/output_schema.h"

namespace fuseline::schema {

namespace {

Json described(Json schema, std::string_view description) {
  if (!description.empty()) schema["description"] = description;
  return schema;
}

}  // namespace

Json text(std::string_view description) { return described({{"type", "string"}}, description); }
Json integer(std::string_view description) { return described({{"type", "integer"}}, description); }
Json number(std::string_view description) { return described({{"type", "number"}}, description); }
Json flag(std::string_view description) { return described({{"type", "boolean"}}, description); }
Json any(std::string_view description) { return {{"description", description}}; }

Json choice(const std::vector<std::string>& values, std::string_view description) {
  return described({{"type", "string"}, {"enum", values}}, description);
}

Json list(Json items, std::string_view description) {
  return described({{"type", "array"}, {"items", std::move(items)}}, description);
}

Json texts(std::string_view description) { return list(text(), description); }

Json mapOf(Json values, std::string_view description) {
  return described({{"type", "object"}, {"additionalProperties", std::move(values)}}, description);
}

Json orNull(Json schema) {
  schema["type"] = Json::array({schema["type"], "null"});
  return schema;
}

Json oneOf(std::vector<Json> schemas) { return {{"oneOf", std::move(schemas)}}; }

Json object(const Fields& fields) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const auto& [name, schema] : fields) {
    properties[name] = schema;
    required.push_back(name);
  }
  return {{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}};
}

}  // namespace fuseline::schema
