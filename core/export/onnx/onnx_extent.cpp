// Terms are kept by their symbols, so that equal polynomials are equal maps.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_extent.h"

#include "core/lowering/expression.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// An extent with more terms would be unreadable.
constexpr std::size_t kMaxTerms = 16;
constexpr std::size_t kMaxDivisionSteps = 32;

using Factors = std::vector<std::string>;

/// Nothing where the divisor has a factor that the other has not.
std::optional<Factors> withoutFactors(const Factors& factors, const Factors& divisor) {
  if (!std::ranges::includes(factors, divisor)) return std::nullopt;
  Factors rest;
  std::ranges::set_difference(factors, divisor, std::back_inserter(rest));
  return rest;
}

std::string termText(const Factors& factors, std::int64_t coefficient) {
  if (factors.empty()) return fmt::format("{}", coefficient);
  const std::string product = fmt::format("{}", fmt::join(factors, "*"));
  return coefficient == 1 ? product : fmt::format("{}*{}", coefficient, product);
}

}  // namespace

OnnxExtent::OnnxExtent(std::int64_t number) { add({}, number); }

OnnxExtent OnnxExtent::symbol(std::string name) {
  OnnxExtent extent;
  extent.add({std::move(name)}, 1);
  return extent;
}

OnnxExtent OnnxExtent::unknown() {
  OnnxExtent extent;
  extent.m_isUnknown = true;
  return extent;
}

std::optional<std::int64_t> OnnxExtent::number() const {
  if (m_isUnknown || m_terms.size() > 1) return std::nullopt;
  if (m_terms.empty()) return 0;
  return m_terms.begin()->first.empty() ? std::optional(m_terms.begin()->second) : std::nullopt;
}

std::optional<std::string> OnnxExtent::singleSymbol() const {
  if (m_isUnknown || m_terms.size() != 1) return std::nullopt;
  const auto& [factors, coefficient] = *m_terms.begin();
  const bool isSymbol = factors.size() == 1 && coefficient == 1 && !factors.front().starts_with('(');
  return isSymbol ? std::optional(factors.front()) : std::nullopt;
}

std::vector<std::string> OnnxExtent::symbols() const { return symbolNames(text()); }

/// The term with the most factors first, as one writes a polynomial.
std::string OnnxExtent::text() const {
  if (m_isUnknown || m_terms.empty()) return m_isUnknown ? "" : "0";
  std::vector<std::pair<Factors, std::int64_t>> terms(m_terms.begin(), m_terms.end());
  const auto rank = [](const auto& term) { return std::pair(term.second < 0, -static_cast<int>(term.first.size())); };
  std::ranges::stable_sort(terms, {}, rank);
  std::string text;
  for (const auto& [factors, coefficient] : terms) {
    if (text.empty())
      text = termText(factors, coefficient);
    else
      text += fmt::format(" {} {}", coefficient < 0 ? '-' : '+', termText(factors, std::abs(coefficient)));
  }
  return text;
}

/// Every product of symbols is at least 1.
std::optional<int> OnnxExtent::sign() const {
  if (m_isUnknown) return std::nullopt;
  if (m_terms.empty()) return 0;
  const auto isAll = [&](int direction) {
    return std::ranges::all_of(
        m_terms, [&](const auto& term) { return term.first.empty() || (term.second > 0) == (direction > 0); });
  };
  OnnxExtent bound;
  for (const auto& [factors, coefficient] : m_terms) bound.add({}, coefficient);
  const std::optional<std::int64_t> sum = bound.number();
  if (!sum) return std::nullopt;
  if (isAll(1) && *sum > 0) return 1;
  if (isAll(-1) && *sum < 0) return -1;
  return std::nullopt;
}

void OnnxExtent::add(const Factors& factors, std::int64_t coefficient) {
  const auto entry = m_terms.try_emplace(factors, 0).first;
  const bool isWide = __builtin_add_overflow(entry->second, coefficient, &entry->second);
  if (isWide || entry->second == std::numeric_limits<std::int64_t>::min() || m_terms.size() > kMaxTerms)
    m_isUnknown = true;
  if (entry->second == 0) m_terms.erase(entry);
  if (m_isUnknown) m_terms.clear();
}

OnnxExtent OnnxExtent::operator+(const OnnxExtent& other) const {
  if (m_isUnknown || other.m_isUnknown) return unknown();
  OnnxExtent sum = *this;
  for (const auto& [factors, coefficient] : other.m_terms) sum.add(factors, coefficient);
  return sum;
}

OnnxExtent OnnxExtent::operator-(const OnnxExtent& other) const { return *this + other * OnnxExtent(-1); }

OnnxExtent OnnxExtent::operator*(const OnnxExtent& other) const {
  if (m_isUnknown || other.m_isUnknown) return unknown();
  OnnxExtent result;
  for (const auto& [left, a] : m_terms)
    for (const auto& [right, b] : other.m_terms) {
      std::int64_t coefficient = 0;
      if (__builtin_mul_overflow(a, b, &coefficient)) return unknown();
      Factors factors;
      std::ranges::merge(left, right, std::back_inserter(factors));
      result.add(factors, coefficient);
      if (result.m_isUnknown) return result;
    }
  return result;
}

std::map<Factors, std::int64_t>::const_iterator OnnxExtent::leadingTerm() const {
  const auto isLess = [](const auto& a, const auto& b) {
    return std::pair(a.first.size(), a.first) < std::pair(b.first.size(), b.first);
  };
  return std::ranges::max_element(m_terms, isLess);
}

/// Long division, by the leading terms.
std::optional<OnnxExtent> OnnxExtent::dividedBy(const OnnxExtent& divisor) const {
  if (m_isUnknown || divisor.m_isUnknown || divisor.m_terms.empty()) return std::nullopt;
  const auto& [factors, coefficient] = *divisor.leadingTerm();
  OnnxExtent quotient, rest = *this;
  for (std::size_t step = 0; step < kMaxDivisionSteps && !rest.m_terms.empty(); ++step) {
    const auto leading = rest.leadingTerm();
    const std::optional<Factors> remaining = withoutFactors(leading->first, factors);
    if (!remaining || leading->second % coefficient != 0) return std::nullopt;
    OnnxExtent term;
    term.add(*remaining, leading->second / coefficient);
    quotient = quotient + term;
    rest = rest - term * divisor;
    if (rest.m_isUnknown || quotient.m_isUnknown) return std::nullopt;
  }
  return rest.m_terms.empty() ? std::optional(quotient) : std::nullopt;
}

bool OnnxExtent::operator==(const OnnxExtent& other) const {
  return !m_isUnknown && !other.m_isUnknown && m_terms == other.m_terms;
}

OnnxExtent productOf(const OnnxExtents& extents) {
  return std::accumulate(extents.begin(), extents.end(), OnnxExtent(1),
                         [](const OnnxExtent& a, const OnnxExtent& b) { return a * b; });
}

}  // namespace fuseline
