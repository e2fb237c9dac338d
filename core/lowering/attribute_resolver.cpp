// One reader a type of attribute.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/attribute_resolver.h"

#include "core/document/json_text.h"
#include "core/ops/external.h"
#include "core/support/text.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string limitText(double limit) { return fmt::format("{}", limit); }

std::string rangeText(const AttributeSpec& spec) {
  if (spec.minimum && spec.maximum)
    return fmt::format("between {} and {}", limitText(*spec.minimum), limitText(*spec.maximum));
  return spec.minimum ? "at least " + limitText(*spec.minimum) : "at most " + limitText(*spec.maximum);
}

bool isName(const std::string& text) {
  const auto isPart = [](unsigned char letter) { return letter < 0x80 && (std::isalnum(letter) || letter == '_'); };
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text.front())) && std::ranges::all_of(text, isPart);
}

bool isNumeric(AttributeType type) { return type != AttributeType::Boolean && type != AttributeType::Text; }

std::string expectedText(const AttributeSpec& spec) {
  switch (spec.type) {
    case AttributeType::Boolean: return "true or false";
    case AttributeType::Text:
      if (spec.isName) return "a name of letters, digits and _, not starting with a digit";
      return spec.choices.empty() ? "text" : fmt::format("one of {}", fmt::join(spec.choices, ", "));
    default: return std::string(typeName(spec.type));
  }
}

}  // namespace

std::string attributePointer(std::size_t index, const std::string& name) {
  return fmt::format("/pipeline/ops/{}/attributes/{}", index, escapedPointer(name));
}

Repair setAttribute(const std::string& id, const std::string& name, Json value) {
  return {fmt::format("Set {} to {}", name, inlineText(value)), SetAttribute{id, name, std::move(value)}};
}

ResolvedAttributes AttributeResolver::resolve(const DocumentOp& op, std::size_t index,
                                              const FusibleOperation& operation) {
  checkNames(op, index, operation);
  ResolvedAttributes resolved;
  for (const AttributeSpec& spec : operation.attributes) {
    const auto written = op.attributes.find(spec.name);
    if (written == op.attributes.end() || written->is_null()) {
      if (spec.isRequired()) resolved.missing.push_back(&spec);
      resolved.values.set(spec.name, spec.defaultValue);
      continue;
    }
    const Field field{op, spec, {attributePointer(index, spec.name), op.id, {}}};
    if (auto value = read(field, *written))
      resolved.values.set(spec.name, std::move(*value));
    else
      resolved.hasFailed = true;
  }
  return resolved;
}

void AttributeResolver::checkNames(const DocumentOp& op, std::size_t index, const FusibleOperation& operation) {
  std::vector<std::string> names;
  for (const AttributeSpec& spec : operation.attributes) names.push_back(spec.name);
  int position = -1;
  for (const auto& [name, value] : op.attributes.items()) {
    ++position;
    if (operation.attribute(name)) continue;
    const std::string near = m_sink.suggest(name, names);
    const std::string known = names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", "));
    Diagnostic& diagnostic = m_sink.error(
        "unknown-attribute", {attributePointer(index, name), op.id, {}},
        fmt::format("{}: {} has no attribute {} ({}){}", op.id, op.operation, name, known, didYouMean(near)));
    if (!near.empty() && !op.attributes.contains(near))
      diagnostic.repairs.push_back(
          {fmt::format("Rename it to {}", near),
           EditGroup{fmt::format("Rename {}.{} to {}", op.id, name, near),
                     {SetAttribute{op.id, name, nullptr}, SetAttribute{op.id, near, value, position}}}});
    diagnostic.repairs.push_back({fmt::format("Remove {}", name), SetAttribute{op.id, name, nullptr}});
  }
}

std::optional<AttributeValue> AttributeResolver::read(const Field& field, const Json& value) {
  switch (field.spec.type) {
    case AttributeType::Boolean:
      if (value.is_boolean()) return AttributeValue(value.get<bool>());
      return wrongType(field, value);
    case AttributeType::Integer: return readInteger(field, value);
    case AttributeType::Real: return readReal(field, value);
    case AttributeType::Text: return readText(field, value);
    case AttributeType::IntegerList: return readList(field, value);
  }
  return std::nullopt;
}

std::optional<AttributeValue> AttributeResolver::readInteger(const Field& field, const Json& value) {
  if (!value.is_number() && !value.is_string()) return wrongType(field, value);
  const auto replace = [&](Json newValue) -> Edit {
    return SetAttribute{field.op.id, field.spec.name, std::move(newValue)};
  };
  const auto number =
      m_symbols.integer(value, fmt::format("{}: {}", field.op.id, field.spec.name), field.spot, replace);
  if (!number || !isInRange(field, static_cast<double>(*number), fmt::format("{}", *number))) return std::nullopt;
  return AttributeValue(*number);
}

std::optional<AttributeValue> AttributeResolver::readReal(const Field& field, const Json& value) {
  if (!value.is_number_float()) {
    const auto number = readInteger(field, value);
    if (!number) return std::nullopt;
    return AttributeValue(static_cast<double>(std::get<std::int64_t>(*number)));
  }
  const double number = value.get<double>();
  if (!isInRange(field, number, limitText(number))) return std::nullopt;
  return AttributeValue(number);
}

// A single integer is a list of one, as in TransformerEngine's normalized_shape.
std::optional<AttributeValue> AttributeResolver::readList(const Field& field, const Json& value) {
  if (value.is_object() || value.is_boolean()) return wrongType(field, value);
  const Json list = value.is_array() ? value : Json::array({value});
  std::vector<std::int64_t> numbers;
  bool isWhole = true;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto replace = [&](Json newValue) -> Edit {
      Json changed = list;
      changed[i] = std::move(newValue);
      return SetAttribute{field.op.id, field.spec.name, std::move(changed)};
    };
    Spot spot = field.spot;
    if (value.is_array()) spot.pointer += fmt::format("/{}", i);
    const std::string what = fmt::format("{}: {}[{}]", field.op.id, field.spec.name, i);
    const auto number = m_symbols.integer(list[i], what, spot, replace);
    if (number && isInRange(field, static_cast<double>(*number), fmt::format("{}", *number)))
      numbers.push_back(*number);
    else
      isWhole = false;
  }
  if (!isWhole) return std::nullopt;
  return AttributeValue(std::move(numbers));
}

std::optional<AttributeValue> AttributeResolver::readText(const Field& field, const Json& value) {
  if (!value.is_string()) return wrongType(field, value);
  const std::string& text = value.get_ref<const std::string&>();
  if (field.spec.unit == kExtentsUnit) return AttributeValue(m_symbols.withValues(text));
  if (field.spec.isName && !isName(text)) return badName(field, text);
  const auto& choices = field.spec.choices;
  if (choices.empty() || std::ranges::find(choices, text) != choices.end()) return AttributeValue(text);
  const std::string near = m_sink.suggest(text, choices);
  Diagnostic& diagnostic = m_sink.error("bad-choice", field.spot,
                                        fmt::format("{}: {} is \"{}\"; expected {}{}", field.op.id, field.spec.name,
                                                    shortened(text), expectedText(field.spec), didYouMean(near)));
  if (!near.empty()) diagnostic.repairs.push_back(setAttribute(field.op.id, field.spec.name, near));
  for (const std::string& choice : choices)
    if (choice != near) diagnostic.repairs.push_back(setAttribute(field.op.id, field.spec.name, choice));
  return std::nullopt;
}

std::optional<AttributeValue> AttributeResolver::badName(const Field& field, const std::string& text) {
  Diagnostic& diagnostic = m_sink.error("bad-name", field.spot,
                                        fmt::format("{}: {} is \"{}\"; expected {}.", field.op.id, field.spec.name,
                                                    shortened(text), expectedText(field.spec)));
  if (!field.spec.isRequired())
    diagnostic.repairs.push_back(
        {fmt::format("Reset {} to its default", field.spec.name), SetAttribute{field.op.id, field.spec.name, nullptr}});
  return std::nullopt;
}

std::optional<AttributeValue> AttributeResolver::wrongType(const Field& field, const Json& value) {
  const AttributeSpec& spec = field.spec;
  Diagnostic& diagnostic =
      m_sink.error("wrong-type", field.spot,
                   fmt::format("{}: {} is {}; expected {}{}.", field.op.id, spec.name, shortened(inlineText(value)),
                               expectedText(spec), isNumeric(spec.type) ? " or an expression" : ""));
  const bool isSpelledOut = value == Json("true") || value == Json("false");
  if (spec.type == AttributeType::Boolean && isSpelledOut)
    diagnostic.repairs.push_back(setAttribute(field.op.id, spec.name, value == Json("true")));
  if (!spec.isRequired())
    diagnostic.repairs.push_back(
        {fmt::format("Reset {} to its default", spec.name), SetAttribute{field.op.id, spec.name, nullptr}});
  return std::nullopt;
}

bool AttributeResolver::isInRange(const Field& field, double value, const std::string& text) {
  const AttributeSpec& spec = field.spec;
  const bool isLow = spec.minimum && value < *spec.minimum;
  const bool isHigh = spec.maximum && value > *spec.maximum;
  if (!isLow && !isHigh) return true;
  Diagnostic& diagnostic =
      m_sink.error("out-of-range", field.spot,
                   fmt::format("{}: {} is {}; expected {}.", field.op.id, spec.name, text, rangeText(spec)));
  if (spec.type == AttributeType::IntegerList) return false;
  const double limit = isLow ? *spec.minimum : *spec.maximum;
  const Json nearestAllowed =
      spec.type == AttributeType::Integer ? Json(static_cast<std::int64_t>(limit)) : Json(limit);
  diagnostic.repairs.push_back(setAttribute(field.op.id, spec.name, nearestAllowed));
  return false;
}

std::string withoutName(const std::string& message, const std::string& name) {
  const std::string prefix = name + ": ";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

void reportBadAttribute(DiagnosticSink& sink, const DocumentOp& op, std::size_t index,
                        const FusibleOperation& operation, const Error& error) {
  const std::string pointer = error.subject.empty() ? fmt::format("/pipeline/ops/{}/attributes", index)
                                                    : attributePointer(index, error.subject);
  sink.error("bad-attribute", {pointer, op.id, {}},
             fmt::format("{}: {}", op.id, withoutName(error.message, operation.name)));
}

}  // namespace fuseline
