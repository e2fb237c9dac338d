// The text of formulas and of the names they use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/formula_expression.h"
#include "core/support/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// The names that a formula may use in addition to functions.
struct FormulaNames {
  std::vector<std::string> variables;
  std::vector<std::pair<std::string, double>> constants;
};

/// Adds a formula to an expression. Errors begin with the column, counted from 1: "column 5: unknown name sigmod; did
/// you mean sigmoid?"
Result<Term> parseFormula(std::string_view text, const FormulaNames& names, FormulaExpression& expression);

/// One entry of a list of names, such as "alpha = 0.25" or "beta[1]".
struct DeclaredName {
  std::string name;
  std::optional<double> value;
  bool isScalar = false;
  int column = 0;
};

/// Allowed forms of a list's entries.
enum class EntryForm { Name, NameAndNumber, NameWithNumber };

/// Names separated by commas; an empty text is an empty list. Name: only that. NameAndNumber: a number must follow.
/// NameWithNumber: a shape, [H] or [1], and a number may follow. Errors begin with the column, as above.
Result<std::vector<DeclaredName>> parseNames(std::string_view text, EntryForm form);

/// An error unless a formula may call something this, at this column.
std::optional<Error> checkFormulaName(const DeclaredName& declared, const std::vector<std::string>& taken);

/// The grammar, the functions and the limits, in lines.
std::string formulaHelp();

}  // namespace fuseline
