// Attributes of an op: their valid values (AttributeSpec) and their actual values (Attributes).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fuseline {

enum class AttributeType { Boolean, Integer, Real, Text, IntegerList };

/// A resolved value. monostate means "not set".
using AttributeValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

/// Describes one attribute; the inspector, the validator and `fuseline ops` are derived from it.
struct AttributeSpec {
  std::string name;
  AttributeType type = AttributeType::Integer;
  /// monostate: the attribute has no default. It must then be given unless `optional` is set.
  AttributeValue defaultValue;
  bool optional = false;
  std::optional<double> minimum;
  std::optional<double> maximum;
  /// Allowed values of a Text attribute; empty means any.
  std::vector<std::string> choices;
  /// A Text attribute that must be a name: a letter or _, then letters, digits and _.
  bool isName = false;
  std::string unit;
  std::string help;

  bool isRequired() const { return !optional && std::holds_alternative<std::monostate>(defaultValue); }
};

/// Resolved attributes of one op, defaults filled in. The typed getters assert that the value is set.
class Attributes {
 public:
  void set(std::string name, AttributeValue value);
  /// monostate when absent.
  const AttributeValue& get(std::string_view name) const;
  bool has(std::string_view name) const;

  bool boolean(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  /// Accepts integers too.
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<std::int64_t>& integers(std::string_view name) const;

  auto begin() const { return m_values.begin(); }
  auto end() const { return m_values.end(); }
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<std::pair<std::string, AttributeValue>> m_values;
};

/// "1024", "true", "1e-05", "[512, 1024]", "" when not set.
std::string toString(const AttributeValue& value);
/// "integer", "list of integers" ...
std::string_view typeName(AttributeType type);

}  // namespace fuseline
