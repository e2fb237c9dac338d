// A formula as a graph of opcodes: built with simplification, differentiated symbolically, evaluated, printed, counted,
// and written into elementwise programs. Equal parts are one term, and every term follows its operands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/elementwise.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace fuseline {

/// Index of a term.
using Term = int;

class FormulaExpression {
 public:
  /// `variable` counts the names that the formula is a function of.
  Term variable(int variable);
  Term constant(double value);
  /// Constants are folded; neutral 0 and 1 vanish, and 0 x is 0.
  Term unary(Opcode opcode, Term a);
  Term binary(Opcode opcode, Term a, Term b);

  // Functions of more than one opcode, with the slopes of te_ops 1.4: 0 at the kink.
  Term relu(Term a) { return binary(Opcode::Max, a, constant(0.0)); }
  Term absolute(Term a) { return binary(Opcode::Max, a, unary(Opcode::Neg, a)); }
  /// max(a, 0) - log(sigmoid(|a|)), which neither overflows nor cancels; its slope is sigmoid(a).
  Term softplus(Term a);
  /// Whole exponents up to 64 are multiplications, 0.5 and -0.5 roots; the others are exp(exponent log(a)), for a > 0.
  Term power(Term a, double exponent);
  /// b if c is 1, d if it is 0.
  Term where(Term c, Term b, Term d);

  /// The derivative of a term with respect to a variable.
  Term derivative(Term of, int variable);

  std::optional<double> constantValue(Term term) const;
  std::size_t numTerms() const { return m_terms.size(); }
  /// The variables that a term depends on, in order.
  std::vector<int> variablesOf(Term term) const;
  /// Operations of all these terms together, each counted once.
  std::int64_t numOperations(std::span<const Term> terms) const;

  /// The values of the first values.size() terms.
  void evaluate(std::span<const double> variables, std::span<double> values) const;
  /// Writes terms into a program. `load` returns the value of a variable.
  std::vector<ValueIndex> emit(ElementwiseBuilder& e, std::span<const Term> terms,
                               const std::function<ValueIndex(int variable)>& load) const;
  /// "x * sigmoid(1.702 * x)"; a sentence in parentheses if it would be too long to read.
  std::string text(Term term, const std::vector<std::string>& names) const;

 private:
  struct Node {
    Opcode opcode = Opcode::Constant;
    int a = -1;  // Load: the variable
    int b = -1;
    double constant = 0.0;
  };
  /// A slope that is simpler than the one from the opcodes: of softplus, or of a power.
  struct KnownSlope {
    Term of = -1;
    std::optional<double> exponent;
  };

  Term add(Node node);
  const Node& node(Term term) const { return m_terms[static_cast<std::size_t>(term)]; }
  Term withSlope(Term term, KnownSlope slope);
  Term product(Term a, int exponent);
  Term slopeOf(Term term, const std::vector<Term>& inner);
  Term unarySlope(Term term);
  std::vector<bool> reached(std::span<const Term> terms) const;
  double textLength(Term term) const;
  int precedence(Term term) const;
  std::string wrapped(Term term, int least, const std::vector<std::string>& names) const;
  std::string print(Term term, const std::vector<std::string>& names) const;

  std::vector<Node> m_terms;
  std::map<std::tuple<Opcode, int, int, std::uint64_t>, Term> m_known;
  std::map<Term, KnownSlope> m_slopes;
};

/// The value of an opcode in double precision; b is not read by those of one operand.
double evaluateOpcode(Opcode opcode, double a, double b);

}  // namespace fuseline
