// Recipes as JSON: a name, fields by their own names, and overrides.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipe.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::string_view kHighPrecision = "high_precision";

Json toJson(const AttributeValue& value) {
  return std::visit(
      [](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return Json();
        else
          return Json(held);
      },
      value);
}

Json toJson(const RoleOverride& special) {
  Json json = Json::object();
  if (special.tensor) json["tensor"] = roleName(*special.tensor);
  if (special.gemm) json["gemm"] = roleName(*special.gemm);
  json["format"] = special.format ? formatName(*special.format) : kHighPrecision;
  return json;
}

/// A value of its own type; Recipe::create checks that it is the field's.
std::optional<AttributeValue> valueOf(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return std::nullopt;
}

Attributes readFields(JsonFields& recipe) {
  Json object = Json::object();
  recipe.read("fields", object, Presence::Optional);
  Attributes fields;
  if (!object.is_object()) recipe.refuse("fields", "expected an object.");
  for (const auto& [name, json] : object.items()) {
    if (const auto value = valueOf(json))
      fields.set(name, *value);
    else
      recipe.refuse(fmt::format("fields/{}", name), "expected true, false, a number or a text.");
  }
  return fields;
}

/// Reads a name that is one of `known`, if it is there.
template <class Role, std::size_t kCount>
std::optional<Role> readRole(JsonFields& fields, const char* key, const std::array<Role, kCount>& known) {
  std::string name;
  fields.read(key, name, Presence::Optional);
  if (name.empty()) return std::nullopt;
  std::vector<std::string_view> names;
  for (const Role role : known) {
    if (roleName(role) == name) return role;
    names.push_back(roleName(role));
  }
  fields.refuse(key, fmt::format("'{:.40}' is no role; there are {}.", name, fmt::join(names, ", ")));
  return std::nullopt;
}

RoleOverride readOverride(JsonFields& fields) {
  RoleOverride special;
  special.tensor =
      readRole(fields, "tensor", std::array{TensorRole::Input, TensorRole::Weight, TensorRole::GradOutput});
  special.gemm = readRole(fields, "gemm", std::array{GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad});
  std::string format;
  fields.read("format", format);
  special.format = parseElementFormat(format);
  if (!special.format && format != kHighPrecision)
    fields.refuse("format",
                  fmt::format("'{:.40}' is no format; there are e4m3, e5m2, e2m1 and {}.", format, kHighPrecision));
  return special;
}

std::string unknownRecipe(const std::string& name) {
  std::vector<std::string> names;
  for (const RecipeDefinition& definition : builtinRecipes()) names.push_back(definition.name);
  const std::string near = nearest(name, names);
  return fmt::format(
      "there is no recipe '{:.40}'; {}.", name,
      near.empty() ? fmt::format("there are {}", fmt::join(names, ", ")) : fmt::format("did you mean {}", near));
}

}  // namespace

Json toJson(const Recipe& recipe) {
  Json fields = Json::object();
  for (const auto& [name, value] : recipe.fields()) fields[name] = toJson(value);
  Json overrides = Json::array();
  for (const RoleOverride& special : recipe.overrides()) overrides.push_back(toJson(special));
  return {{"name", recipe.name()}, {"fields", std::move(fields)}, {"overrides", std::move(overrides)}};
}

Result<Recipe> recipeFromJson(const Json& json) {
  JsonFields reader(json, "/recipe");
  std::string name;
  reader.read("name", name);
  const RecipeDefinition* definition = findRecipe(name);
  if (!definition) reader.refuse("name", unknownRecipe(name));
  const Attributes fields = readFields(reader);
  std::vector<RoleOverride> overrides;
  reader.readObjects(
      "overrides", [&](JsonFields& object) { overrides.push_back(readOverride(object)); }, Presence::Optional);
  if (reader.error()) return *reader.error();
  return Recipe::create(*definition, fields, std::move(overrides));
}

}  // namespace fuseline
