// Spells names as files want them.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_symbols.h"

#include "core/document/json_text.h"
#include "core/lowering/expression.h"

#include <cctype>
#include <variant>
#include <vector>

namespace fuseline {

std::string ImportedIds::of(std::string_view name) {
  std::string id;
  for (const char c : name) {
    const bool isPlain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (isPlain || (!id.empty() && id.back() != '_')) id += isPlain ? c : '_';
  }
  while (id.ends_with('_')) id.pop_back();
  const bool isName = !id.empty() && std::isdigit(static_cast<unsigned char>(id.front())) == 0;
  if (!isName) id.insert(0, "t");
  if (m_taken.insert(id).second) return id;
  while (std::isdigit(static_cast<unsigned char>(id.back())) != 0) id.pop_back();
  int& number = m_numbers.try_emplace(id, 2).first->second;
  while (!m_taken.insert(id + std::to_string(number)).second) ++number;
  return id + std::to_string(number);
}

Json ImportedSymbols::shapeOf(const ::onnx::TensorShapeProto& shape) {
  Json extents = Json::array();
  for (const auto& extent : shape.dim()) {
    const bool isNumber = extent.has_dim_value() && extent.dim_value() >= 0;  // some write -1 for any
    extents.push_back(isNumber ? Json(extent.dim_value()) : Json(extentOf(extent.dim_param())));
  }
  return extents;
}

/// "batch", or "batch*heads" of symbols that occur elsewhere, too.
std::string ImportedSymbols::extentOf(const std::string& parameter) {
  const std::vector<std::string> names = symbolNames(parameter);
  const ExpressionValue value = evaluate(parameter, [this](const std::string& name) { return defaultOf(name); });
  const auto* const extent = std::get_if<std::int64_t>(&value);
  if (names.empty() || !extent || *extent <= 0) return symbolOf(parameter);
  std::string expression = parameter;
  for (const std::string& name : names) expression = replaceSymbol(expression, name, symbolOf(name));
  return expression;
}

std::string ImportedSymbols::symbolOf(const std::string& parameter) {
  const auto known = m_names.find(parameter);
  if (known != m_names.end() && !parameter.empty()) return known->second;
  const std::string name = m_ids.of(parameter.empty() ? "N" : parameter);
  m_names[parameter] = name;
  m_symbols[name] = defaultOf(parameter);
  return name;
}

std::int64_t ImportedSymbols::defaultOf(const std::string& parameter) const {
  const auto found = m_defaults.find(parameter);
  return found == m_defaults.end() ? kAnyExtent : found->second;
}

}  // namespace fuseline
