// OnnxExtent: an extent of a tensor as a polynomial of symbols, such as 2*B*S + 1.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Coefficients are integers. A result that 64 bits cannot hold is unknown, and so is everything computed from it.
class OnnxExtent {
 public:
  OnnxExtent(std::int64_t number = 0);
  /// name: a symbol, or an expression of symbols in parentheses.
  static OnnxExtent symbol(std::string name);
  static OnnxExtent unknown();

  bool isUnknown() const { return m_isUnknown; }
  /// Nothing where symbols are in it, or it is unknown.
  std::optional<std::int64_t> number() const;
  bool is(std::int64_t value) const { return number() == value; }
  /// The name, if it is a single symbol.
  std::optional<std::string> singleSymbol() const;
  /// Names of symbols, in order, repeated as often as they occur.
  std::vector<std::string> symbols() const;
  /// As pipeline files write it: "2*B*S + 1".
  std::string text() const;
  /// -1, 0 or 1 where the sign is the same for all symbols from 1 on.
  std::optional<int> sign() const;

  OnnxExtent operator+(const OnnxExtent& other) const;
  OnnxExtent operator-(const OnnxExtent& other) const;
  OnnxExtent operator*(const OnnxExtent& other) const;
  /// The quotient, if it is a polynomial without a remainder.
  std::optional<OnnxExtent> dividedBy(const OnnxExtent& divisor) const;
  /// Unknown extents equal nothing.
  bool operator==(const OnnxExtent& other) const;

 private:
  using Factors = std::vector<std::string>;  // sorted; empty: the term is a number
  void add(const Factors& factors, std::int64_t coefficient);
  std::map<Factors, std::int64_t>::const_iterator leadingTerm() const;

  std::map<Factors, std::int64_t> m_terms;  // coefficients, none of them 0
  bool m_isUnknown = false;
};

using OnnxExtents = std::vector<OnnxExtent>;

OnnxExtent productOf(const OnnxExtents& extents);

}  // namespace fuseline
