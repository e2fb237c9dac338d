// A symbol that an operation proves equal to something else is replaced by it in the next pass.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_facts.h"

#include "core/lowering/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <variant>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::size_t kMaxResolutions = 64;

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> parts(std::string_view text, char separator) {
  std::vector<std::string_view> found;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    found.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return found;
}

std::optional<std::int64_t> numberIn(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

bool isName(std::string_view text) { return symbolNames(text) == std::vector<std::string>{std::string(text)}; }

}  // namespace

bool areNumbers(const OnnxExtents& extents) {
  return std::ranges::all_of(extents, [](const OnnxExtent& extent) { return extent.number().has_value(); });
}

// ---- where symbols come from

OnnxExtent OnnxFactSymbols::declared(const ::onnx::TensorShapeProto_Dimension& extent, const std::string& place) {
  if (extent.has_dim_value() && extent.dim_value() >= 0) return extent.dim_value();  // some write -1 for any
  const std::string& text = extent.dim_param();
  if (std::ranges::none_of(text, [](unsigned char c) { return std::isalnum(c) != 0; })) return fresh(place);  // "?"
  OnnxExtent sum;
  for (const std::string_view product : parts(text, '+')) {
    OnnxExtent term = 1;
    for (const std::string_view factor : parts(product, '*')) {
      const std::optional<std::int64_t> number = numberIn(factor);
      if (!number && !isName(factor)) return named(text);
      term = term * (number ? OnnxExtent(*number) : named(std::string(factor)));
    }
    sum = sum + term;
  }
  return sum.isUnknown() ? named(text) : sum;
}

/// Its default is any extent, unless one was given.
std::string OnnxFactSymbols::newSymbol(const std::string& wish) {
  std::string symbol = m_ids.of(wish);
  const auto given = m_given.find(symbol);
  m_defaults[symbol] = given == m_given.end() ? ImportedSymbols::kAnyExtent : given->second;
  return symbol;
}

OnnxExtent OnnxFactSymbols::named(const std::string& parameter) {
  const auto [entry, isNew] = m_names.try_emplace("name " + parameter);
  if (isNew) entry->second = newSymbol(parameter);
  return known(entry->second);
}

OnnxExtent OnnxFactSymbols::ofLiteral(const std::string& wish, std::int64_t number) {
  const auto [entry, isNew] = m_names.try_emplace(fmt::format("literal {} {}", wish, number));
  if (isNew) {
    entry->second = m_ids.of(wish);
    m_defaults[entry->second] = number;
    m_literals.insert(entry->second);
    if (m_asNumbers.contains(entry->second)) m_known[entry->second] = number;
  }
  return known(entry->second);
}

OnnxExtent OnnxFactSymbols::fresh(const std::string& place) {
  const auto [entry, isNew] = m_names.try_emplace("place " + place);
  if (isNew) {
    entry->second = newSymbol("N");
    m_freshSymbols.insert(entry->second);
  }
  return known(entry->second);
}

/// Resolved through the known values of single symbols; a cycle of them ends at any of its symbols.
OnnxExtent OnnxFactSymbols::known(const std::string& symbol) const {
  OnnxExtent extent = OnnxExtent::symbol(symbol);
  for (std::size_t steps = 0; steps < kMaxResolutions; ++steps) {
    const std::optional<std::string> name = extent.singleSymbol();
    const auto found = name ? m_known.find(*name) : m_known.end();
    if (found == m_known.end()) break;
    extent = found->second;
  }
  return extent;
}

void OnnxFactSymbols::setDefault(const std::string& symbol, std::int64_t value) {
  if (!m_literals.contains(symbol) && !m_given.contains(symbol) && m_defaults.contains(symbol))
    m_defaults[symbol] = value;
}

// ---- operations

bool OnnxFactSymbols::isFresh(const OnnxExtent& extent) const {
  const std::optional<std::string> symbol = extent.singleSymbol();
  return symbol && m_freshSymbols.contains(*symbol);
}

bool OnnxFactSymbols::hasLiteral(const OnnxExtent& extent) const {
  return std::ranges::any_of(extent.symbols(), [&](const std::string& name) { return m_literals.contains(name); });
}

void OnnxFactSymbols::learn(const std::string& symbol, const OnnxExtent& extent) {
  const std::vector<std::string> names = extent.symbols();
  if (extent.isUnknown() || std::ranges::find(names, symbol) != names.end()) return;
  m_isChanged = m_known.emplace(symbol, extent).second || m_isChanged;
}

bool OnnxFactSymbols::learnFresh(const OnnxExtent& a, const OnnxExtent& b) {
  if (isFresh(a))
    learn(*a.singleSymbol(), b);
  else if (isFresh(b))
    learn(*b.singleSymbol(), a);
  else
    return false;
  return true;
}

void OnnxFactSymbols::needNumber(const OnnxExtent& extent) {
  for (const std::string& name : extent.symbols())
    if (m_literals.contains(name)) learn(name, m_defaults.at(name));
}

void OnnxFactSymbols::needNumbers(const OnnxExtents& extents) {
  for (const OnnxExtent& extent : extents) needNumber(extent);
}

/// A symbol for a number of the model is kept when it meets this number, because exporters write such numbers into
/// masks and tables, too.
OnnxExtent OnnxFactSymbols::broadcast(const OnnxExtent& a, const OnnxExtent& b) {
  if (a == b || b.is(1)) return a;
  if (a.is(1)) return b;
  if (a.isUnknown() || b.isUnknown()) return a.isUnknown() ? b : a;
  if (a.number() && b.number()) return a;
  if (!a.number() && !b.number() && learnFresh(a, b)) return isFresh(a) ? b : a;
  if ((hasLiteral(a) || hasLiteral(b)) && valueOf(a) != valueOf(b)) {
    const bool isOne = valueOf(a) == 1;  // and repeated
    if (valueOf(b) != 1) needNumber(a);
    if (!isOne) needNumber(b);
    return isOne ? b : a;
  }
  if (hasLiteral(a)) return a;
  return hasLiteral(b) || b.number() ? b : a;
}

void OnnxFactSymbols::equate(const OnnxExtent& a, const OnnxExtent& b) {
  if (a == b || a.isUnknown() || b.isUnknown() || (a.number() && b.number())) return;
  needNumber(a);
  needNumber(b);
  if (learnFresh(a, b) || hasLiteral(a) || hasLiteral(b)) return;
  if (b.number() && a.singleSymbol()) learn(*a.singleSymbol(), b);
  if (a.number() && b.singleSymbol()) learn(*b.singleSymbol(), a);
}

OnnxExtent OnnxFactSymbols::quotient(const OnnxExtent& a, const OnnxExtent& b) {
  const std::optional<std::int64_t> left = a.number(), right = b.number();
  if (left && right) return *right == 0 ? OnnxExtent::unknown() : OnnxExtent(*left / *right);
  if (const std::optional<OnnxExtent> exact = a.dividedBy(b)) return *exact;
  needNumber(a);
  needNumber(b);
  const OnnxExtent asText = OnnxExtent::symbol(fmt::format("(({})/({}))", a.text(), b.text()));
  const bool isSmall = asText.text().size() < 64;
  return isSmall && !a.isUnknown() && !b.isUnknown() && valueOf(asText) ? asText : OnnxExtent::unknown();
}

std::optional<std::int64_t> OnnxFactSymbols::valueOf(const OnnxExtent& extent) const {
  if (extent.isUnknown()) return std::nullopt;
  if (const std::optional<std::int64_t> number = extent.number()) return number;
  const ExpressionValue value = evaluate(extent.text(), [this](const std::string& name) -> std::optional<std::int64_t> {
    const auto found = m_defaults.find(name);
    return found == m_defaults.end() ? std::nullopt : std::optional(found->second);
  });
  const auto* const number = std::get_if<std::int64_t>(&value);
  return number ? std::optional(*number) : std::nullopt;
}

}  // namespace fuseline
