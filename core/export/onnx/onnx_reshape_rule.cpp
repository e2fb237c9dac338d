// Extents before and after are matched in groups of equal products, from the left.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_reshape_rule.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace fuseline {

namespace {

void copyExtents(const OnnxExtents& shape, OnnxExtents& wanted) {
  for (std::size_t axis = 0; axis < wanted.size() && axis < shape.size(); ++axis)
    if (wanted[axis].is(0)) wanted[axis] = shape[axis];
}

/// One extent that is unknown follows from the others, as -1 does.
void askForUnknown(OnnxExtents& wanted) {
  const auto isOpen = [](const OnnxExtent& extent) { return extent.isUnknown() || extent.is(-1); };
  if (std::ranges::count_if(wanted, isOpen) == 1) *std::ranges::find_if(wanted, isOpen) = -1;
}

/// Replaces -1 by the quotient of the number of elements and the other extents.
void fillRest(const OnnxExtent& total, OnnxExtents& wanted, OnnxFactSymbols& symbols) {
  const auto rest = std::ranges::find_if(wanted, [](const OnnxExtent& extent) { return extent.is(-1); });
  if (rest == wanted.end()) return;
  *rest = 1;
  const OnnxExtent others = productOf(wanted);
  *rest = others.isUnknown() || total.isUnknown() ? OnnxExtent::unknown() : symbols.quotient(total, others);
}

/// Literal extents of a group go to the numbers of the other side that are their multiples, equal ones first.
class LiteralPlacement {
 public:
  LiteralPlacement(std::span<const OnnxExtent> from, std::span<OnnxExtent> to, OnnxFactSymbols& symbols)
      : m_from(from), m_to(to), m_symbols(symbols) {}

  bool place() {
    const OnnxExtent product = productOf({m_from.begin(), m_from.end()});
    if (m_to.size() == 1) {
      m_to[0] = product;
      return true;
    }
    for (const std::string& symbol : product.symbols()) {
      const OnnxExtents before(m_to.begin(), m_to.end());
      const bool isPlaced = contains(symbol) || put(symbol, true) || put(symbol, false);
      if (!isPlaced) return false;
    }
    return productOf({m_to.begin(), m_to.end()}) == product;
  }

 private:
  bool contains(const std::string& symbol) const {
    return std::ranges::any_of(m_to, [&](const OnnxExtent& extent) {
      const std::vector<std::string> names = extent.symbols();
      return std::ranges::find(names, symbol) != names.end();
    });
  }

  bool put(const std::string& symbol, bool isWhole) {
    const std::int64_t value = m_symbols.defaults().at(symbol);
    for (OnnxExtent& extent : m_to) {
      const std::optional<std::int64_t> number = extent.number();
      if (!number || value <= 0 || (isWhole ? *number != value : *number % value != 0)) continue;
      extent = OnnxExtent(*number / value) * OnnxExtent::symbol(symbol);
      return true;
    }
    return false;
  }

  std::span<const OnnxExtent> m_from;
  std::span<OnnxExtent> m_to;
  OnnxFactSymbols& m_symbols;
};

/// Extents from begin on, until their product at defaults is that of the other side.
class Grouping {
 public:
  Grouping(const OnnxExtents& from, OnnxExtents& to, OnnxFactSymbols& symbols)
      : m_from(from), m_to(to), m_symbols(symbols) {}

  bool match() {
    while (m_fromEnd < m_from.size() && m_toEnd < m_to.size())
      if (!closeGroup()) return false;
    return true;
  }

 private:
  bool closeGroup() {
    const std::size_t fromBegin = m_fromEnd, toBegin = m_toEnd;
    std::int64_t left = valueOf(m_from[m_fromEnd++]), right = valueOf(m_to[m_toEnd++]);
    while (left != right) {
      std::int64_t& smaller = left < right ? left : right;
      const OnnxExtent* const next = left < right ? nextOf(m_from, m_fromEnd) : nextOf(m_to, m_toEnd);
      if (!next || __builtin_mul_overflow(smaller, valueOf(*next), &smaller) || smaller <= 0) return false;
    }
    takeOnes(m_from, m_fromEnd, m_toEnd == m_to.size());
    takeOnes(m_to, m_toEnd, m_fromEnd == m_from.size());
    const std::span from = std::span(m_from).subspan(fromBegin, m_fromEnd - fromBegin);
    return LiteralPlacement(from, std::span(m_to).subspan(toBegin, m_toEnd - toBegin), m_symbols).place();
  }

  static const OnnxExtent* nextOf(const OnnxExtents& extents, std::size_t& end) {
    return end < extents.size() ? &extents[end++] : nullptr;
  }

  /// Takes the remaining extents of 1 at the end.
  void takeOnes(const OnnxExtents& extents, std::size_t& end, bool isOtherAtEnd) const {
    while (isOtherAtEnd && end < extents.size() && valueOf(extents[end]) == 1) ++end;
  }

  std::int64_t valueOf(const OnnxExtent& extent) const { return m_symbols.valueOf(extent).value_or(-1); }

  const OnnxExtents& m_from;
  OnnxExtents& m_to;
  OnnxFactSymbols& m_symbols;
  std::size_t m_fromEnd = 0, m_toEnd = 0;
};

bool hasLiterals(const OnnxExtents& extents, const OnnxFactSymbols& symbols) {
  return std::ranges::any_of(extents, [&](const OnnxExtent& extent) { return symbols.hasLiteral(extent); });
}

/// -1 as a number where all symbols are at their defaults.
bool fillRestAtDefaults(const OnnxExtents& shape, OnnxExtents& wanted, const OnnxFactSymbols& symbols) {
  const auto rest = std::ranges::find_if(wanted, [](const OnnxExtent& extent) { return extent.is(-1); });
  if (rest == wanted.end()) return true;
  *rest = 1;
  const auto total = symbols.valueOf(productOf(shape)), others = symbols.valueOf(productOf(wanted));
  if (!total || !others || *others <= 0 || *total % *others != 0) return false;
  *rest = *total / *others;
  return true;
}

}  // namespace

OnnxExtents reshapedExtents(const OnnxExtents& shape, OnnxExtents wanted, bool keepsZero, OnnxFactSymbols& symbols) {
  if (!keepsZero) copyExtents(shape, wanted);
  askForUnknown(wanted);
  const OnnxExtent total = productOf(shape);
  if (hasLiterals(shape, symbols)) {
    // -1 is the quotient of the symbols if there is no remainder; otherwise a number hides a symbol.
    OnnxExtents numbered = wanted, others = wanted;
    std::ranges::replace_if(
        others, [](const OnnxExtent& extent) { return extent.is(-1); }, OnnxExtent(1));
    if (others != wanted && total.dividedBy(productOf(others))) {
      fillRest(total, wanted, symbols);
      return wanted;
    }
    if (productOf(wanted) == total) return wanted;
    if (fillRestAtDefaults(shape, numbered, symbols) && Grouping(shape, numbered, symbols).match()) return numbered;
    symbols.needNumbers(shape);
  }
  fillRest(total, wanted, symbols);
  return wanted;
}

}  // namespace fuseline
