// Attribute values by name.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attributes.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

void Attributes::set(std::string name, AttributeValue value) {
  const auto found = std::ranges::find(m_values, name, [](const auto& entry) { return entry.first; });
  if (found != m_values.end())
    found->second = std::move(value);
  else
    m_values.emplace_back(std::move(name), std::move(value));
}

const AttributeValue& Attributes::get(std::string_view name) const {
  static const AttributeValue unset;
  const auto found =
      std::ranges::find(m_values, name, [](const auto& entry) -> std::string_view { return entry.first; });
  return found == m_values.end() ? unset : found->second;
}

bool Attributes::has(std::string_view name) const { return !std::holds_alternative<std::monostate>(get(name)); }

bool Attributes::boolean(std::string_view name) const { return std::get<bool>(get(name)); }

std::int64_t Attributes::integer(std::string_view name) const { return std::get<std::int64_t>(get(name)); }

double Attributes::real(std::string_view name) const {
  const AttributeValue& value = get(name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

const std::string& Attributes::text(std::string_view name) const { return std::get<std::string>(get(name)); }

const std::vector<std::int64_t>& Attributes::integers(std::string_view name) const {
  return std::get<std::vector<std::int64_t>>(get(name));
}

namespace {

struct ToString {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ", "));
  }
};

}  // namespace

std::string toString(const AttributeValue& value) { return std::visit(ToString{}, value); }

std::string_view typeName(AttributeType type) {
  switch (type) {
    case AttributeType::Boolean: return "boolean";
    case AttributeType::Integer: return "integer";
    case AttributeType::Real: return "number";
    case AttributeType::Text: return "text";
    case AttributeType::IntegerList: return "list of integers";
  }
  return "?";
}

}  // namespace fuseline
