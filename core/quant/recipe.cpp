// Recipes: checking fields, finding the quantizer of an operand.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipe.h"

#include "core/quant/gemm_pairs.h"
#include "core/support/text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>

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
  return found.empty() ? fmt::format(" `fuseline recipes {}` lists its fields.", definition.name)
                       : fmt::format(" Did you mean {}?", found);
}

/// Long lists are in the help of the recipe.
std::string choicesText(std::span<const std::string> choices) {
  constexpr std::size_t kMostListed = 6;
  if (choices.size() <= kMostListed) return fmt::format("{}", fmt::join(choices, ", "));
  return fmt::format("the {} that `fuseline recipes` lists, such as {}", choices.size(), choices.front());
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
    return Verdict::no(fmt::format("{} is '{}', but must be one of {}.", spec.name, *text, choicesText(spec.choices)));
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

Usage directionOf(OperandRole role) {
  const bool contractsRows =
      role.gemm == GemmRole::Wgrad || (role.gemm == GemmRole::Dgrad && role.tensor == TensorType::Weight);
  return contractsRows ? Usage::Columnwise : Usage::Rowwise;
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
  for (const Verdict& fits : {recipe.checkOverrides(), recipe.checkDelayed(), recipe.checkGemms()})
    if (!fits) return fieldError(definition, fits.reason(), "overrides");
  return recipe;
}

Result<QuantizerSource> quantizerSource(const RecipeDefinition& recipe, const Attributes& fields) {
  const Result<Recipe> made = Recipe::create(recipe, fields);
  if (!made) return made.error();
  return QuantizerSource{&recipe, made->fields()};
}

namespace {

/// The quantizer whose format the override changes, even if another override leaves the operand in high precision.
std::optional<QuantizerSpec> formatBase(const Recipe& recipe, OperandRole role, const RoleOverride& special) {
  auto base = recipe.definition().quantizer ? recipe.definition().quantizer(recipe.fields(), role) : std::nullopt;
  for (const RoleOverride& earlier : recipe.overrides()) {
    if (&earlier == &special) break;
    const bool isHere = earlier.op.empty() || earlier.op == special.op;
    const auto* const source = isHere && earlier.matches(role) && earlier.quantizer ? &*earlier.quantizer : nullptr;
    if (source && source->recipe->quantizer) base = source->recipe->quantizer(source->fields, role);
  }
  return base;
}

}  // namespace

/// An override names operands that exist, and formats that their scaling has.
Verdict Recipe::checkOverrides() const {
  for (const RoleOverride& special : m_overrides) {
    if (std::ranges::none_of(operandRoles(), [&](OperandRole role) { return special.matches(role); }))
      return Verdict::no(fmt::format("the override for {} matches no operand of a GEMM.", names(special)));
    if (special.isOfRowwise && (!special.gemm || special.tensor == TensorType::GradOutput))
      return Verdict::no(
          fmt::format("the override for {} sets columnwise_source rowwise_dequantized; expected the input of wgrad or "
                      "the weight of dgrad. Set tensor and gemm.",
                      names(special)));
    if (const Verdict fits = checkFormat(special); !fits) return fits;
  }
  return Verdict::yes();
}

Verdict Recipe::checkFormat(const RoleOverride& special) const {
  if (!special.format) return Verdict::yes();
  for (const OperandRole role : operandRoles()) {
    if (!special.matches(role)) continue;
    const std::optional<QuantizerSpec> base = formatBase(*this, role, special);
    if (!base)
      return Verdict::no(fmt::format("the override for {} sets {}, but this recipe does not quantize it.",
                                     names(special), formatName(*special.format)));
    if (isNvfp4(base->scaling) != (special.format == ElementFormat::E2M1))
      return Verdict::no(fmt::format("the override for {} sets {}, but its scaling {} supports {}.", names(special),
                                     formatName(*special.format), traitsOf(base->scaling).name,
                                     isNvfp4(base->scaling) ? "e2m1" : "e4m3 and e5m2"));
  }
  return Verdict::yes();
}

/// One history length and one algorithm for all: so TransformerEngine asks of its DelayedScalingRequests.
Verdict Recipe::checkDelayed() const {
  const Attributes* first = m_definition->hasState ? &m_fields : nullptr;
  for (const RoleOverride& special : m_overrides) {
    if (!special.quantizer || !special.quantizer->recipe->hasState) continue;
    if (first && *first != special.quantizer->fields)
      return Verdict::no(fmt::format(
          "the override for {} has other DelayedScaling fields than an earlier one. Set the same fields for all.",
          names(special)));
    first = &special.quantizer->fields;
  }
  return Verdict::yes();
}

Verdict Recipe::checkGemms(const IsAt& isAt) const {
  for (const GemmRole gemm : {GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad}) {
    std::vector<GemmFactor> factors;
    for (const OperandRole role : operandRoles())
      if (role.gemm == gemm) factors.push_back({role.tensor, quantizerFor(role, isAt)});
    const Verdict fits = canMultiply(gemm, factors[0], factors[1], m_definition->isCustom);
    if (!fits) return fits;
  }
  if (!m_definition->isCustom) return Verdict::yes();
  for (const TensorType tensor : {TensorType::Input, TensorType::Weight, TensorType::GradOutput})
    if (const Verdict fits = isDelayedWhole(tensor, [&](OperandRole role) { return quantizerFor(role, isAt); }); !fits)
      return fits;
  return Verdict::yes();
}

Recipe::Operand Recipe::operandFor(OperandRole role, const IsAt& isAt) const {
  Operand operand;
  if (!m_definition->quantizer) return operand;
  operand.quantizer = m_definition->quantizer(m_fields, role);
  operand.isDequantized = m_definition->isDequantized && m_definition->isDequantized(m_fields, role);
  bool isPlain = false;  // final: set by an override, and reverted only by one with its own quantizer
  for (const RoleOverride& special : m_overrides) {
    const bool isHere = special.op.empty() || (isAt && isAt(special.op));
    if (!isHere || !special.matches(role)) continue;
    if (special.quantizer) {
      operand.quantizer = special.quantizer->recipe->quantizer
                              ? special.quantizer->recipe->quantizer(special.quantizer->fields, role)
                              : std::nullopt;
      if (operand.quantizer) operand.quantizer->isOfRowwise = special.isOfRowwise;
      isPlain = false;
    } else if (!special.format) {
      isPlain = true;
    } else if (operand.quantizer) {
      operand.quantizer->format = *special.format;
    }
    if (!special.format) operand.isDequantized = special.isOfRowwise && (isPlain || !operand.quantizer);
  }
  const bool isOverridden = role.gemm != GemmRole::Fprop && m_definition->field("backward_override") &&
                            m_fields.text("backward_override") != "none";
  if (isPlain || isOverridden) operand.quantizer = std::nullopt;
  if (isOverridden) operand.isDequantized = m_fields.text("backward_override") == "dequantized";
  return operand;
}

std::optional<QuantizerSpec> Recipe::quantizerFor(OperandRole role, const IsAt& isAt) const {
  return operandFor(role, isAt).quantizer;
}

bool Recipe::isDequantized(OperandRole role, const IsAt& isAt) const { return operandFor(role, isAt).isDequantized; }

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
  return recipe.hardware ? "needs " + toString(*recipe.hardware) : "needs no minimum compute capability";
}

Verdict fieldsFit(const Recipe& recipe, ComputeCapability device) {
  const RecipeDefinition& definition = recipe.definition();
  return definition.checkDevice ? definition.checkDevice(recipe.fields(), device) : Verdict::yes();
}

std::vector<std::string> recipesFor(ComputeCapability device) {
  std::vector<std::string> names;
  for (const RecipeDefinition& recipe : builtinRecipes())
    if (!recipe.isCustom && (!recipe.hardware || recipe.hardware->isMetBy(device))) names.push_back(recipe.name);
  return names;
}

namespace {

/// Requirement of a scaling's GEMMs.
HardwareNeed hardwareOf(Scaling scaling) {
  if (scaling == Scaling::PerTensor) return {.minimum = {8, 9}};
  return {.minimum = isOfBlocksOf128(scaling) ? ComputeCapability{9, 0} : ComputeCapability{10, 0}};
}

/// Whether the device multiplies the tensors that the quantizers of every op of a recipe produce; each quantizer may be
/// of another recipe.
Verdict supportsScalings(const Recipe& recipe, ComputeCapability device) {
  std::vector<std::string> places = {""};
  for (const RoleOverride& special : recipe.overrides()) places.push_back(special.op);
  for (const std::string& place : places)
    for (const OperandRole role : operandRoles()) {
      const auto spec = recipe.quantizerFor(role, [&](const std::string& op) { return op == place; });
      if (!spec || hardwareOf(spec->scaling).isMetBy(device)) continue;
      return Verdict::no(
          fmt::format("{} quantizes the {} of {} with scaling {}, which needs {}, but this device has {}.",
                      recipe.name(), roleName(role.tensor), roleName(role.gemm), traitsOf(spec->scaling).name,
                      toString(hardwareOf(spec->scaling)), toString(device)));
    }
  return Verdict::yes();
}

}  // namespace

Verdict supports(const Recipe& recipe, ComputeCapability device) {
  const std::vector<std::string> possible = recipesFor(device);
  const bool isPossible = recipe.definition().isCustom || std::ranges::count(possible, recipe.name()) > 0;
  if (const Verdict fits = supportsScalings(recipe, device); isPossible && !fits) return fits;
  if (isPossible) return fieldsFit(recipe, device);
  return Verdict::no(fmt::format("{} {}, but this device has {}. Valid values: {}.", recipe.name(),
                                 hardwareText(recipe.definition()), toString(device), fmt::join(possible, ", ")));
}

}  // namespace fuseline
