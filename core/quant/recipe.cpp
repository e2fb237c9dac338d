// Recipes: checking fields, finding the quantizer of an operand.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipe.h"

#include "core/support/text.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace recipes {
#define FUSELINE_CATALOG_ENTRY(name) RecipeDefinition name();
#include "core/quant/recipes/recipes.inc"
#undef FUSELINE_CATALOG_ENTRY
}  // namespace recipes

namespace {

std::string nearestField(const RecipeDefinition& definition, std::string_view name) {
  std::vector<std::string> names;
  for (const AttributeSpec& field : definition.fields) names.push_back(field.name);
  const std::string found = nearest(name, names);
  return found.empty() ? "" : fmt::format(" Did you mean {}?", found);
}

bool hasType(const AttributeValue& value, AttributeType type) {
  switch (type) {
    case AttributeType::Boolean: return std::holds_alternative<bool>(value);
    case AttributeType::Integer: return std::holds_alternative<std::int64_t>(value);
    case AttributeType::Real: return std::holds_alternative<double>(value) || hasType(value, AttributeType::Integer);
    case AttributeType::Text: return std::holds_alternative<std::string>(value);
    case AttributeType::IntegerList: return std::holds_alternative<std::vector<std::int64_t>>(value);
  }
  return false;
}

Verdict checkRange(const AttributeSpec& spec, double value) {
  const bool isTooSmall = spec.minimum && !(value >= *spec.minimum);
  const bool isTooLarge = spec.maximum && !(value <= *spec.maximum);
  if (isTooSmall)
    return Verdict::no(fmt::format("{} is {}, but must be at least {}.", spec.name, value, *spec.minimum));
  if (isTooLarge) return Verdict::no(fmt::format("{} is {}, but must be at most {}.", spec.name, value, *spec.maximum));
  return Verdict::yes();
}

Verdict checkValue(const AttributeSpec& spec, const AttributeValue& value) {
  if (!hasType(value, spec.type))
    return Verdict::no(
        fmt::format("{} is {}, but must be of type {}.", spec.name, toString(value), typeName(spec.type)));
  if (const auto* real = std::get_if<double>(&value)) return checkRange(spec, *real);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return checkRange(spec, static_cast<double>(*integer));
  const auto* text = std::get_if<std::string>(&value);
  if (text && !spec.choices.empty() && std::ranges::find(spec.choices, *text) == spec.choices.end())
    return Verdict::no(
        fmt::format("{} is '{}', but must be one of {}.", spec.name, *text, fmt::join(spec.choices, ", ")));
  return Verdict::yes();
}

Error fieldError(const RecipeDefinition& definition, const std::string& sentence, std::string subject = {}) {
  return {.message = fmt::format("{}: {}", definition.name, sentence), .subject = std::move(subject)};
}

Result<Attributes> withDefaults(const RecipeDefinition& definition, const Attributes& given) {
  for (const auto& [name, value] : given)
    if (!definition.field(name))
      return fieldError(definition, fmt::format("there is no field {}.{}", name, nearestField(definition, name)), name);
  Attributes fields;
  for (const AttributeSpec& spec : definition.fields) {
    const AttributeValue& value = given.has(spec.name) ? given.get(spec.name) : spec.defaultValue;
    if (const Verdict verdict = checkValue(spec, value); !verdict)
      return fieldError(definition, verdict.reason(), spec.name);
    fields.set(spec.name, value);
  }
  return fields;
}

std::string names(const RoleOverride& special) {
  return fmt::format("{} of {}", special.tensor ? roleName(*special.tensor) : "every tensor",
                     special.gemm ? roleName(*special.gemm) : "every GEMM");
}

}  // namespace

std::string_view roleName(TensorType role) {
  switch (role) {
    case TensorType::Input: return "input";
    case TensorType::Weight: return "weight";
    case TensorType::GradOutput: return "grad_output";
  }
  return "?";
}

std::string_view roleName(GemmRole role) {
  switch (role) {
    case GemmRole::Fprop: return "fprop";
    case GemmRole::Dgrad: return "dgrad";
    case GemmRole::Wgrad: return "wgrad";
  }
  return "?";
}

const std::vector<OperandRole>& operandRoles() {
  static const std::vector<OperandRole> roles = {
      {TensorType::Input, GemmRole::Fprop},      {TensorType::Weight, GemmRole::Fprop},
      {TensorType::GradOutput, GemmRole::Dgrad}, {TensorType::Weight, GemmRole::Dgrad},
      {TensorType::GradOutput, GemmRole::Wgrad}, {TensorType::Input, GemmRole::Wgrad}};
  return roles;
}

Direction directionOf(OperandRole role) {
  const bool contractsRows =
      role.gemm == GemmRole::Wgrad || (role.gemm == GemmRole::Dgrad && role.tensor == TensorType::Weight);
  return contractsRows ? Direction::Columnwise : Direction::Rowwise;
}

std::string toString(ComputeCapability capability) {
  return fmt::format("{}.{} (sm_{}{})", capability.major, capability.minor, capability.major, capability.minor);
}

std::optional<ComputeCapability> parseCapability(std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  if (!architecture.starts_with(kPrefix)) return std::nullopt;
  int digits = 0;
  const char* const end = architecture.data() + architecture.size();
  const auto [stop, problem] = std::from_chars(architecture.data() + kPrefix.size(), end, digits);
  if (problem != std::errc() || stop != end) return std::nullopt;
  return ComputeCapability{digits / 10, digits % 10};
}

bool HardwareNeed::isMetBy(ComputeCapability device) const { return device >= minimum && (!below || device < *below); }

std::string toString(const HardwareNeed& need) {
  const std::string minimum = fmt::format("compute capability {} or newer", toString(need.minimum));
  return need.below ? fmt::format("{}, below {}", minimum, toString(*need.below)) : minimum;
}

const AttributeSpec* RecipeDefinition::field(std::string_view fieldName) const {
  const auto found = std::ranges::find(fields, fieldName, &AttributeSpec::name);
  return found == fields.end() ? nullptr : &*found;
}

bool RoleOverride::matches(OperandRole role) const {
  return (!tensor || *tensor == role.tensor) && (!gemm || *gemm == role.gemm);
}

Recipe::Recipe(const RecipeDefinition& definition, Attributes fields, std::vector<RoleOverride> overrides)
    : m_definition(&definition), m_fields(std::move(fields)), m_overrides(std::move(overrides)) {}

Result<Recipe> Recipe::create(const RecipeDefinition& definition, const Attributes& fields,
                              std::vector<RoleOverride> overrides) {
  Result<Attributes> resolved = withDefaults(definition, fields);
  if (!resolved) return resolved.error();
  Recipe recipe(definition, std::move(*resolved), std::move(overrides));
  const Verdict verdict = definition.check ? definition.check(recipe.m_fields) : Verdict::yes();
  if (!verdict) return fieldError(definition, verdict.reason());
  if (const Verdict fits = recipe.checkOverrides(); !fits) return fieldError(definition, fits.reason(), "overrides");
  if (const Verdict fits = recipe.checkGemms(); !fits) return fieldError(definition, fits.reason(), "overrides");
  return recipe;
}

/// An special names operands that exist, and formats that their scaling has.
Verdict Recipe::checkOverrides() const {
  for (const RoleOverride& special : m_overrides) {
    if (std::ranges::none_of(operandRoles(), [&](OperandRole role) { return special.matches(role); }))
      return Verdict::no(fmt::format("the override for {} is for an operand that no GEMM has.", names(special)));
    if (!special.format) continue;
    for (const OperandRole role : operandRoles()) {
      if (!special.matches(role)) continue;
      const auto base = m_definition->quantizer ? m_definition->quantizer(m_fields, role) : std::nullopt;
      if (!base)
        return Verdict::no(fmt::format("the override for {} asks for {}, but this recipe does not quantize it.",
                                       names(special), formatName(*special.format)));
      if ((base->format == ElementFormat::E2M1) != (special.format == ElementFormat::E2M1))
        return Verdict::no(fmt::format("the override for {} asks for {}, but its scaling {} is for {}.", names(special),
                                       formatName(*special.format), traitsOf(base->scaling).name,
                                       base->format == ElementFormat::E2M1 ? "e2m1" : "e4m3 and e5m2"));
    }
  }
  return Verdict::yes();
}

/// Tensor cores multiply E4M3 by either, but not E5M2 by E5M2.
Verdict Recipe::checkGemms() const {
  for (const GemmRole gemm : {GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad}) {
    const auto isE5m2 = [&](OperandRole role) {
      const std::optional<QuantizerSpec> spec = role.gemm == gemm ? quantizerFor(role) : std::nullopt;
      return spec && spec->format == ElementFormat::E5M2;
    };
    if (std::ranges::count_if(operandRoles(), isE5m2) == 2)
      return Verdict::no(
          fmt::format("both operands of {} would be e5m2, which no GEMM takes; let one be e4m3.", roleName(gemm)));
  }
  return Verdict::yes();
}

std::optional<QuantizerSpec> Recipe::quantizerFor(OperandRole role,
                                                  const std::function<bool(const std::string& op)>& isAt) const {
  if (!m_definition->quantizer) return std::nullopt;
  std::optional<QuantizerSpec> spec = m_definition->quantizer(m_fields, role);
  for (const RoleOverride& special : m_overrides) {
    const bool isHere = special.op.empty() || (isAt && isAt(special.op));
    if (!spec || !isHere || !special.matches(role)) continue;
    if (!special.format) return std::nullopt;
    spec->format = *special.format;
  }
  return spec;
}

bool Recipe::operator==(const Recipe& other) const {
  return name() == other.name() && m_fields == other.m_fields && m_overrides == other.m_overrides;
}

const std::vector<RecipeDefinition>& builtinRecipes() {
  static const std::vector<RecipeDefinition> definitions = {
#define FUSELINE_CATALOG_ENTRY(name) recipes::name(),
#include "core/quant/recipes/recipes.inc"
#undef FUSELINE_CATALOG_ENTRY
  };
  return definitions;
}

const RecipeDefinition* findRecipe(std::string_view name) {
  const auto found = std::ranges::find(builtinRecipes(), name, &RecipeDefinition::name);
  return found == builtinRecipes().end() ? nullptr : &*found;
}

std::string hardwareText(const RecipeDefinition& recipe) {
  return recipe.hardware ? "needs " + toString(*recipe.hardware) : "runs on any device";
}

Verdict fieldsFit(const Recipe& recipe, ComputeCapability device) {
  const RecipeDefinition& definition = recipe.definition();
  return definition.checkDevice ? definition.checkDevice(recipe.fields(), device) : Verdict::yes();
}

std::vector<std::string> recipesFor(ComputeCapability device) {
  std::vector<std::string> names;
  for (const RecipeDefinition& recipe : builtinRecipes())
    if (!recipe.hardware || recipe.hardware->isMetBy(device)) names.push_back(recipe.name);
  return names;
}

Verdict supports(const Recipe& recipe, ComputeCapability device) {
  const std::vector<std::string> possible = recipesFor(device);
  if (std::ranges::count(possible, recipe.name()) > 0) return fieldsFit(recipe, device);
  return Verdict::no(fmt::format("{} {}, but this device has {}. Choose one of {}.", recipe.name(),
                                 hardwareText(recipe.definition()), toString(device), fmt::join(possible, ", ")));
}

}  // namespace fuseline
