// Formulas of ops: parsed, differentiated and evaluated; lists of names.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/formula_parser.h"
#include "tests/fuzz/fuzz.h"

#include <array>

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::textOf(data, size);
  for (const EntryForm form : {EntryForm::Name, EntryForm::NameAndNumber, EntryForm::NameWithNumber})
    (void)parseNames(text, form);
  FormulaExpression expression;
  const Result<Term> parsed = parseFormula(text, {.variables = {"x", "y"}, .constants = {{"a", 0.5}}}, expression);
  if (!parsed) return 0;
  (void)expression.derivative(*parsed, 0);
  (void)expression.text(*parsed, {"x", "y"});
  std::vector<double> values(expression.numTerms());
  expression.evaluate(std::array{0.25, -1.5}, values);
  return 0;
}
