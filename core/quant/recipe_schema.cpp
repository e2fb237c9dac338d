// The JSON Schema of a recipe in a pipeline file.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipe.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

Json typeSchema(const AttributeSpec& field) {
  switch (field.type) {
    case AttributeType::Boolean: return {{"type", "boolean"}};
    case AttributeType::Integer: return {{"type", "integer"}};
    case AttributeType::Real: return {{"type", "number"}};
    case AttributeType::IntegerList: return {{"type", "array"}, {"items", {{"type", "integer"}}}};
    case AttributeType::Text: break;
  }
  return field.choices.empty() ? Json{{"type", "string"}} : Json{{"enum", field.choices}};
}

Json fieldSchema(const AttributeSpec& field) {
  Json schema = typeSchema(field);
  if (field.minimum) schema["minimum"] = *field.minimum;
  if (field.maximum) schema["maximum"] = *field.maximum;
  schema["description"] = field.help;
  std::visit(
      [&](const auto& value) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) schema["default"] = value;
      },
      field.defaultValue);
  return schema;
}

/// Fields are next to the name or under "fields".
Json definitionCondition(const RecipeDefinition& definition) {
  Json fields = Json::object();
  for (const AttributeSpec& field : definition.fields) fields[field.name] = fieldSchema(field);
  Json properties = fields;
  properties["fields"] = {{"type", "object"}, {"properties", std::move(fields)}};
  return {{"if", {{"properties", {{"name", {{"const", definition.name}}}}}, {"required", {"name"}}}},
          {"then", {{"properties", std::move(properties)}}}};
}

Json overrideSchema() {
  return {
      {"type", "object"},
      {"properties",
       {{"tensor", {{"enum", {"input", "weight", "grad_output"}}, {"description", "Left out: any."}}},
        {"gemm", {{"enum", {"fprop", "dgrad", "wgrad"}}, {"description", "Left out: any."}}},
        {"op", {{"type", "string"}, {"description", "Path of an op. Default: any op."}}},
        {"format", {{"enum", {"e4m3", "e5m2", "e2m1", "high_precision"}}}},
        {"quantizer",
         {{"type", {"string", "object"}},
          {"description",
           "Recipe that quantizes the operand, instead of a format: its name, or an object with name and fields."}}},
        {"columnwise_source",
         {{"enum", {"original", "rowwise_dequantized"}},
          {"description", "Source of the columnwise tensor: the tensor itself, or the dequantized rowwise tensor."}}}}},
      {"anyOf", Json::array({Json{{"required", {"format"}}}, Json{{"required", {"quantizer"}}}})}};
}

}  // namespace

Json recipeSchema() {
  Json names = Json::array();
  Json conditions = Json::array();
  for (const RecipeDefinition& definition : builtinRecipes()) {
    names.push_back({{"const", definition.name}, {"description", definition.summary}});
    conditions.push_back(definitionCondition(definition));
  }
  const Json overrides = {{"type", "array"},
                          {"description", "Overrides of single operands; the last match wins."},
                          {"items", overrideSchema()}};
  return {{"type", {"object", "null"}},
          {"description", "Number formats of GEMM operands in linear ops."},
          {"properties", {{"name", {{"oneOf", std::move(names)}}}, {"overrides", overrides}}},
          {"required", {"name"}},
          {"allOf", std::move(conditions)}};
}

}  // namespace fuseline
