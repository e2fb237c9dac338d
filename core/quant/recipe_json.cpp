// Recipes as JSON: a name, fields by their own names, and overrides.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/operand_setting.h"
#include "core/quant/recipe.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::string_view kHighPrecision = "high_precision";
constexpr std::string_view kColumnwiseSource = "columnwise_source";
constexpr std::array<std::string_view, 2> kSources = {"original", "rowwise_dequantized"};  // of columnwise tensors

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

Json toJson(const QuantizerSource& source) {
  Json json = {{"name", source.recipe->name}};
  for (const AttributeSpec& field : source.recipe->fields)
    if (source.fields.get(field.name) != field.defaultValue) json[field.name] = toJson(source.fields.get(field.name));
  return json.size() > 1 ? json : Json(source.recipe->name);
}

/// A value with its JSON type; Recipe::create checks that it is the field's. Nothing for integers beyond 64 bits.
std::optional<AttributeValue> valueOf(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  const bool isTooLarge = json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  if (json.is_number_integer() && !isTooLarge) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return std::nullopt;
}

void readField(JsonFields& recipe, const std::string& pointer, const std::string& name, const Json& json,
               Attributes& fields) {
  if (const auto value = valueOf(json))
    fields.set(name, *value);
  else
    recipe.refuse(pointer, "expected true, false, a number or a text.");
}

/// The fields in "fields", and those next to the name.
Attributes readFields(JsonFields& recipe, const Json& json) {
  Json object = Json::object();
  recipe.read("fields", object, Presence::Optional);
  Attributes fields;
  if (!object.is_object()) recipe.refuse("fields", "expected an object.");
  for (const auto& [name, value] : object.items()) readField(recipe, "fields/" + name, name, value, fields);
  if (!json.is_object()) return fields;
  for (const auto& [name, value] : json.items())
    if (name != "name" && name != "fields" && name != "overrides") readField(recipe, name, name, value, fields);
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
  fields.refuse(key, fmt::format("'{:.40}' is not a role. Valid values: {}.", name, fmt::join(names, ", ")));
  return std::nullopt;
}

void readColumnwiseSource(JsonFields& fields, RoleOverride& special) {
  std::string source(kSources.front());
  fields.read(kColumnwiseSource.data(), source, Presence::Optional);
  special.isOfRowwise = source == kSources.back();
  if (std::ranges::find(kSources, source) == kSources.end())
    fields.refuse(kColumnwiseSource.data(), fmt::format("'{:.40}' is not a columnwise_source. Valid values: {}.",
                                                        source, fmt::join(kSources, ", ")));
}

void readFormat(JsonFields& fields, RoleOverride& special) {
  std::string format;
  fields.read("format", format);
  special.format = parseElementFormat(format);
  if (!special.format && format != kHighPrecision)
    fields.refuse("format",
                  fmt::format("'{:.40}' is not a format. Valid values: e4m3, e5m2, e2m1, {}.", format, kHighPrecision));
}

/// A recipe's name, or an object of it and fields.
void readQuantizer(JsonFields& fields, const Json& json, RoleOverride& special) {
  const Json recipe = json.is_string() ? Json{{"name", json}} : json;
  const bool isNested =
      recipe.is_object() && (recipe.contains("overrides") || recipe.value("name", Json()) == "CustomRecipe");
  const Result<Recipe> made =
      isNested ? Error{"expected a recipe with a single scaling and no overrides."} : recipeFromJson(recipe);
  if (made)
    special.quantizer = QuantizerSource{&made->definition(), made->fields()};
  else
    fields.refuse("quantizer", made.error().message);
}

RoleOverride readOverride(JsonFields& fields) {
  RoleOverride special;
  special.tensor =
      readRole(fields, "tensor", std::array{TensorType::Input, TensorType::Weight, TensorType::GradOutput});
  special.gemm = readRole(fields, "gemm", std::array{GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad});
  fields.read("op", special.op, Presence::Optional);
  readColumnwiseSource(fields, special);
  Json quantizer;
  fields.read("quantizer", quantizer, Presence::Optional);
  if (quantizer.is_null())
    readFormat(fields, special);
  else
    readQuantizer(fields, quantizer, special);
  return special;
}

std::string ambiguousRecipe(std::string_view name, const std::vector<const RecipeDefinition*>& candidates) {
  std::vector<std::string> names;
  for (const RecipeDefinition* definition : candidates) names.push_back(definition->name);
  return fmt::format("'{:.40}' matches several recipes: {}.", name, fmt::join(names, ", "));
}

std::string unknownRecipe(const std::string& name) {
  std::vector<std::string> names;
  for (const RecipeDefinition& definition : builtinRecipes()) names.push_back(definition.name);
  const std::string near = nearest(name, names);
  return fmt::format("there is no recipe '{:.40}'{}", name,
                     near.empty() ? "; `fuseline recipes` lists them." : didYouMean(near));
}

}  // namespace

Json toJson(const RoleOverride& special) {
  Json json = Json::object();
  if (special.tensor) json["tensor"] = roleName(*special.tensor);
  if (special.gemm) json["gemm"] = roleName(*special.gemm);
  if (!special.op.empty()) json["op"] = special.op;
  if (special.quantizer)
    json["quantizer"] = toJson(*special.quantizer);
  else
    json["format"] = special.format ? formatName(*special.format) : kHighPrecision;
  if (special.isOfRowwise) json[std::string(kColumnwiseSource)] = kSources.back();
  return json;
}

Json toJson(const Recipe& recipe) {
  Json fields = Json::object();
  for (const auto& [name, value] : recipe.fields()) fields[name] = toJson(value);
  Json overrides = Json::array();
  for (const RoleOverride& special : recipe.overrides()) overrides.push_back(toJson(special));
  return {{"name", recipe.name()}, {"fields", std::move(fields)}, {"overrides", std::move(overrides)}};
}

namespace {

template <class Number>
std::optional<Number> parseNumber(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<AttributeValue> parseValue(AttributeType type, const std::string& text) {
  switch (type) {
    case AttributeType::Boolean:
      if (text == "true" || text == "false") return text == "true";
      return std::nullopt;
    case AttributeType::Integer:
      if (const auto value = parseNumber<std::int64_t>(text)) return *value;
      return std::nullopt;
    case AttributeType::Real:
      if (const auto value = parseNumber<double>(text)) return *value;
      return std::nullopt;
    case AttributeType::Text: return text;
    case AttributeType::IntegerList: return std::nullopt;
  }
  return std::nullopt;
}

std::string lowered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return result;
}

}  // namespace

Result<Attributes> parseFields(const RecipeDefinition& definition,
                               const std::vector<std::pair<std::string, std::string>>& texts) {
  Attributes fields;
  for (const auto& [name, text] : texts) {
    const AttributeSpec* const field = definition.field(name);
    const auto value = field ? parseValue(field->type, text) : std::optional<AttributeValue>(text);
    if (!value)
      return Error{fmt::format("{}: {} is '{:.40}', but must be of type {}.", definition.name, name, text,
                               typeName(field->type)),
                   ErrorKind::Usage};
    fields.set(name, *value);
  }
  return fields;
}

Result<const RecipeDefinition*> recipeNamed(std::string_view name) {
  std::vector<const RecipeDefinition*> candidates;
  for (const RecipeDefinition& definition : builtinRecipes()) {
    if (lowered(definition.name) == lowered(name)) return &definition;
    if (!name.empty() && lowered(definition.name).starts_with(lowered(name))) candidates.push_back(&definition);
  }
  if (candidates.size() == 1) return candidates.front();
  if (!candidates.empty()) return Error{ambiguousRecipe(name, candidates), ErrorKind::Usage};
  return Error{unknownRecipe(std::string(name)), ErrorKind::Usage};
}

Result<Recipe> recipeFromJson(const Json& json) {
  JsonFields reader(json, "/recipe");
  std::string name;
  reader.read("name", name);
  const RecipeDefinition* definition = findRecipe(name);
  if (!definition) reader.refuse("name", unknownRecipe(name));
  const Attributes fields = readFields(reader, json);
  std::vector<RoleOverride> overrides;
  reader.readObjects(
      "overrides", [&](JsonFields& object) { overrides.push_back(readOverride(object)); }, Presence::Optional);
  if (reader.error()) return *reader.error();
  return Recipe::create(*definition, fields, std::move(overrides));
}

}  // namespace fuseline
