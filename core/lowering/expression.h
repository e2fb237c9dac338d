// Integer expressions over symbols; problems have a kind and a position.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fuseline {

struct ExpressionProblem {
  enum class Kind { Syntax, UnknownSymbol, Overflow, Division };
  Kind kind = Kind::Syntax;
  int column = 1;      // 1-based, in the expression
  std::string symbol;  // UnknownSymbol
  std::string message;
};

using ExpressionValue = std::variant<std::int64_t, ExpressionProblem>;
using SymbolLookup = std::function<std::optional<std::int64_t>(const std::string&)>;

ExpressionValue evaluate(std::string_view text, const SymbolLookup& lookup);

/// An integer expression over symbols: numbers, names, + - * / and parentheses; division must be exact.
/// Errors: a sentence with the column, an unknown symbol with the nearest known one, overflow of 64 bits.
Result<std::int64_t> evaluateExpression(std::string_view text, const std::map<std::string, std::int64_t>& symbols);

/// Converts text typed into a field to an expression: "4k" is 4096, "2^14" is 16384, and "*2", "/2" or "+1" continue
/// from `before`. Anything else stays as it is, right or wrong.
std::string typedExpression(std::string_view typed, std::string_view before);

/// The names in an expression, in order, also when it is malformed.
std::vector<std::string> symbolNames(std::string_view text);
/// The expression with one name replaced.
std::string replaceSymbol(std::string_view text, std::string_view name, std::string_view newName);

}  // namespace fuseline
