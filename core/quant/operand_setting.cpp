// Splits keys at their dots from the end, and texts at their brackets.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/operand_setting.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::array kOperandTensors = {TensorType::Input, TensorType::Weight, TensorType::GradOutput};
constexpr std::array kOperandGemms = {GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad};
constexpr std::string_view kEveryTensor = "all";
constexpr std::string_view kUnquantized = "high_precision";
constexpr char kOfRowwise = '~';

/// The parts after and before the last dot.
std::pair<std::string_view, std::string_view> lastPart(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  if (dot == std::string_view::npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

template <class Role, std::size_t kCount>
std::optional<Role> roleNamed(const std::array<Role, kCount>& roles, std::string_view name) {
  const auto found = std::ranges::find(roles, name, [](Role role) { return roleName(role); });
  return found == roles.end() ? std::nullopt : std::optional(*found);
}

/// Nothing: the key names no operand.
std::optional<RoleOverride> operandOf(std::string_view key) {
  RoleOverride special;
  auto [place, tensor] = lastPart(key);
  special.gemm = roleNamed(kOperandGemms, tensor);
  if (special.gemm) std::tie(place, tensor) = lastPart(place);
  special.tensor = roleNamed(kOperandTensors, tensor);
  if (!special.tensor && tensor != kEveryTensor) return std::nullopt;
  special.op = place;
  return special;
}

Error noOperandSetting(std::string_view key, const std::string& text, const std::string& problem) {
  return {fmt::format("{} is '{:.60}': {} Valid values: e4m3, e5m2, e2m1, high_precision, or a recipe, as in mxfp8 or "
                      "float8current(fp8_format=E4M3).",
                      key, text, problem),
          ErrorKind::Usage};
}

/// "a=1,b=2".
std::vector<std::pair<std::string, std::string>> pairsOf(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t sign = part.find('=');
    pairs.emplace_back(part.substr(0, sign), sign == std::string::npos ? "" : part.substr(sign + 1));
  }
  return pairs;
}

Result<QuantizerSource> parseSource(const std::string& text) {
  const std::size_t bracket = text.find('(');
  if (bracket != std::string::npos && text.back() != ')') return Error{"its parenthesis is not closed."};
  const Result<const RecipeDefinition*> definition = recipeNamed(text.substr(0, bracket));
  if (!definition) return definition.error();
  if ((*definition)->isCustom) return Error{"a CustomRecipe has no quantizer itself."};
  const std::string fields = bracket == std::string::npos ? "" : text.substr(bracket + 1, text.size() - bracket - 2);
  const Result<Attributes> parsed = parseFields(**definition, pairsOf(fields));
  return parsed ? quantizerSource(**definition, *parsed) : Result<QuantizerSource>(parsed.error());
}

std::string jsonText(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// "Float8CurrentScaling(fp8_format=E4M3)" of {"name": "Float8CurrentScaling", "fp8_format": "E4M3"}.
std::string sourceText(const Json& quantizer) {
  if (!quantizer.is_object()) return jsonText(quantizer);
  std::vector<std::string> fields;
  for (const auto& [key, value] : quantizer.items())
    if (key != "name") fields.push_back(key + "=" + jsonText(value));
  const std::string name = jsonText(quantizer.value("name", Json("")));
  return fields.empty() ? name : fmt::format("{}({})", name, fmt::join(fields, ","));
}

}  // namespace

bool isOperandKey(std::string_view key) { return operandOf(key).has_value(); }

Result<RoleOverride> parseOperandSetting(std::string_view key, const std::string& text) {
  RoleOverride special = operandOf(key).value_or(RoleOverride());
  std::string rest = text;
  special.isOfRowwise = rest.starts_with(kOfRowwise);
  if (special.isOfRowwise) rest.erase(0, 1);
  special.format = parseElementFormat(rest);
  if (special.format || rest == kUnquantized) return special;
  Result<QuantizerSource> source = parseSource(rest);
  if (!source) return noOperandSetting(key, text, source.error().message);
  special.quantizer = std::move(*source);
  return special;
}

std::string operandSettingText(const Json& special) {
  if (!special.is_object()) return special.dump();
  const bool isOfRowwise = special.value("columnwise_source", Json()) == "rowwise_dequantized";
  const Json form = special.contains("quantizer") ? special["quantizer"] : special.value("format", Json(kUnquantized));
  return (isOfRowwise ? std::string(1, kOfRowwise) : "") + sourceText(form);
}

Result<Recipe> recipeWithSettings(const RecipeDefinition& definition,
                                  const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<std::pair<std::string, std::string>> fields;
  std::vector<RoleOverride> overrides;
  for (const auto& [key, text] : settings) {
    if (definition.field(key) || !isOperandKey(key)) {
      fields.emplace_back(key, text);
      continue;
    }
    Result<RoleOverride> special = parseOperandSetting(key, text);
    if (!special) return special.error();
    overrides.push_back(std::move(*special));
  }
  const Result<Attributes> parsed = parseFields(definition, fields);
  if (!parsed) return parsed.error();
  Result<Recipe> recipe = Recipe::create(definition, *parsed, std::move(overrides));
  if (!recipe) return Error{recipe.error().message, ErrorKind::Usage};
  return recipe;
}

}  // namespace fuseline
