// Terms, their derivatives, and their results.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/formula_expression.h"

#include "core/ops/reference_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kLargestProduct = 64;
constexpr double kLongestText = 400;

bool isBinary(Opcode opcode) { return opcode >= Opcode::Add && opcode <= Opcode::Less; }
bool isLeaf(Opcode opcode) { return opcode == Opcode::Load || opcode == Opcode::Constant; }

std::string_view infixSign(Opcode opcode) {
  switch (opcode) {
    case Opcode::Add: return " + ";
    case Opcode::Sub: return " - ";
    case Opcode::Mul: return " * ";
    case Opcode::Div: return " / ";
    case Opcode::Less: return " < ";
    default: return "";
  }
}

// How tightly a printed term holds together.
constexpr int kComparison = 0;
constexpr int kSum = 1;
constexpr int kProduct = 2;
constexpr int kNegation = 3;
constexpr int kPower = 4;
constexpr int kPrimary = 5;

}  // namespace

double evaluateOpcode(Opcode opcode, double a, double b) {
  switch (opcode) {
    case Opcode::Add: return a + b;
    case Opcode::Sub: return a - b;
    case Opcode::Mul: return a * b;
    case Opcode::Div: return a / b;
    case Opcode::Max: return reference::maximum(a, b);
    case Opcode::Min: return reference::minimum(a, b);
    case Opcode::Less: return reference::less(a, b);
    case Opcode::Neg: return -a;
    case Opcode::Exp: return std::exp(a);
    case Opcode::Log: return std::log(a);
    case Opcode::Sqrt: return std::sqrt(a);
    case Opcode::Rsqrt: return 1.0 / std::sqrt(a);
    case Opcode::Tanh: return std::tanh(a);
    case Opcode::Erf: return std::erf(a);
    case Opcode::Sigmoid: return reference::sigmoid(a);
    case Opcode::Gelu: return reference::gelu(a);
    case Opcode::GeluGrad: return reference::geluGrad(a);
    case Opcode::ExactGelu: return reference::exactGelu(a);
    case Opcode::ExactGeluGrad: return reference::exactGeluGrad(a);
    case Opcode::Silu: return reference::silu(a);
    case Opcode::SiluGrad: return reference::siluGrad(a);
    case Opcode::Load:
    case Opcode::Constant:
    case Opcode::Dropout: break;  // no function of a and b
  }
  return std::nan("");
}

// ---- building

Term FormulaExpression::add(Node node) {
  const auto bits = std::bit_cast<std::uint64_t>(node.constant);
  const auto [known, isNew] =
      m_known.emplace(std::tuple(node.opcode, node.a, node.b, bits), static_cast<Term>(m_terms.size()));
  if (isNew) m_terms.push_back(node);
  return known->second;
}

Term FormulaExpression::variable(int variable) { return add({.opcode = Opcode::Load, .a = variable}); }

// -0 is 0: they are printed alike.
Term FormulaExpression::constant(double value) { return add({.constant = value == 0.0 ? 0.0 : value}); }

std::optional<double> FormulaExpression::constantValue(Term term) const {
  if (node(term).opcode != Opcode::Constant) return std::nullopt;
  return node(term).constant;
}

Term FormulaExpression::unary(Opcode opcode, Term a) {
  if (const auto value = constantValue(a)) return constant(evaluateOpcode(opcode, *value, 0.0));
  if (opcode == Opcode::Neg && node(a).opcode == Opcode::Neg) return node(a).a;
  return add({.opcode = opcode, .a = a});
}

Term FormulaExpression::binary(Opcode opcode, Term a, Term b) {
  const auto left = constantValue(a);
  const auto right = constantValue(b);
  if (left && right) return constant(evaluateOpcode(opcode, *left, *right));
  switch (opcode) {
    case Opcode::Add:
      if (left == 0.0) return b;
      if (right == 0.0) return a;
      if (node(b).opcode == Opcode::Neg) return binary(Opcode::Sub, a, node(b).a);
      break;
    case Opcode::Sub:
      if (left == 0.0) return unary(Opcode::Neg, b);
      if (right == 0.0) return a;
      break;
    case Opcode::Mul:
      if (left == 0.0 || right == 0.0) return constant(0.0);
      if (left == 1.0) return b;
      if (right == 1.0) return a;
      if (left == -1.0) return unary(Opcode::Neg, b);
      if (right == -1.0) return unary(Opcode::Neg, a);
      break;
    case Opcode::Div:
      if (left == 0.0) return constant(0.0);
      if (right == 1.0) return a;
      break;
    case Opcode::Max:
    case Opcode::Min:
      if (a == b) return a;
      break;
    default: break;
  }
  return add({.opcode = opcode, .a = a, .b = b});
}

Term FormulaExpression::withSlope(Term term, KnownSlope slope) {
  // A term that simplification turned into a constant, or into the operand itself, needs no slope.
  if (term > slope.of && !constantValue(term)) m_slopes.emplace(term, slope);
  return term;
}

Term FormulaExpression::softplus(Term a) {
  const Term tail = unary(Opcode::Log, unary(Opcode::Sigmoid, absolute(a)));
  return withSlope(binary(Opcode::Sub, relu(a), tail), {.of = a});
}

Term FormulaExpression::product(Term a, int exponent) {
  if (exponent == 1) return a;
  const Term half = product(a, exponent / 2);
  const Term even = binary(Opcode::Mul, half, half);
  return exponent % 2 == 0 ? even : binary(Opcode::Mul, even, a);
}

Term FormulaExpression::power(Term a, double exponent) {
  if (const auto value = constantValue(a)) return constant(std::pow(*value, exponent));
  if (exponent == 0.0) return constant(1.0);
  if (exponent == 0.5) return unary(Opcode::Sqrt, a);
  if (exponent == -0.5) return unary(Opcode::Rsqrt, a);
  const double magnitude = std::abs(exponent);
  const KnownSlope slope = {.of = a, .exponent = exponent};
  if (magnitude != std::floor(magnitude) || magnitude > kLargestProduct)
    return withSlope(unary(Opcode::Exp, binary(Opcode::Mul, constant(exponent), unary(Opcode::Log, a))), slope);
  const Term whole = product(a, static_cast<int>(magnitude));
  return withSlope(exponent > 0.0 ? whole : binary(Opcode::Div, constant(1.0), whole), slope);
}

Term FormulaExpression::where(Term c, Term b, Term d) {
  const Term otherwise = binary(Opcode::Sub, constant(1.0), c);
  return binary(Opcode::Add, binary(Opcode::Mul, c, b), binary(Opcode::Mul, otherwise, d));
}

// ---- derivatives

/// The slope of an opcode of one operand.
Term FormulaExpression::unarySlope(Term term) {
  const Term a = node(term).a;
  const Term one = constant(1.0);
  switch (node(term).opcode) {
    case Opcode::Neg: return constant(-1.0);
    case Opcode::Exp: return term;
    case Opcode::Log: return binary(Opcode::Div, one, a);
    case Opcode::Sqrt: return binary(Opcode::Div, constant(0.5), term);
    case Opcode::Rsqrt: return binary(Opcode::Mul, constant(-0.5), binary(Opcode::Div, term, a));
    case Opcode::Tanh: return binary(Opcode::Sub, one, binary(Opcode::Mul, term, term));
    case Opcode::Erf:
      return binary(Opcode::Mul, constant(2.0 * std::numbers::inv_sqrtpi),
                    unary(Opcode::Exp, unary(Opcode::Neg, binary(Opcode::Mul, a, a))));
    // sigmoid(-a) is 1 - sigmoid(a) without cancellation.
    case Opcode::Sigmoid: return binary(Opcode::Mul, term, unary(Opcode::Sigmoid, unary(Opcode::Neg, a)));
    case Opcode::Gelu: return unary(Opcode::GeluGrad, a);
    case Opcode::ExactGelu: return unary(Opcode::ExactGeluGrad, a);
    case Opcode::Silu: return unary(Opcode::SiluGrad, a);
    default: return constant(0.0);
  }
}

/// The derivative of one term, given those of its operands. Where two operands of max or min are equal both slopes are
/// 0, as those of te_ops' rectifiers are at 0.
Term FormulaExpression::slopeOf(Term term, const std::vector<Term>& inner) {
  const auto of = [&](Term operand) { return inner[static_cast<std::size_t>(operand)]; };
  const auto times = [&](Term a, Term b) { return binary(Opcode::Mul, a, b); };
  if (const auto known = m_slopes.find(term); known != m_slopes.end()) {
    const auto [operand, exponent] = known->second;
    if (!exponent) return times(unary(Opcode::Sigmoid, operand), of(operand));
    return times(times(constant(*exponent), power(operand, *exponent - 1.0)), of(operand));
  }
  const auto [opcode, a, b, constantOfNode] = node(term);
  switch (opcode) {
    case Opcode::Add:
    case Opcode::Sub: return binary(opcode, of(a), of(b));
    case Opcode::Mul: return binary(Opcode::Add, times(of(a), b), times(a, of(b)));
    case Opcode::Div: return binary(Opcode::Div, binary(Opcode::Sub, of(a), times(term, of(b))), b);
    case Opcode::Max:
      return binary(Opcode::Add, times(binary(Opcode::Less, b, a), of(a)), times(binary(Opcode::Less, a, b), of(b)));
    case Opcode::Min:
      return binary(Opcode::Add, times(binary(Opcode::Less, a, b), of(a)), times(binary(Opcode::Less, b, a), of(b)));
    case Opcode::Less: return constant(0.0);
    default: return times(unarySlope(term), of(a));
  }
}

Term FormulaExpression::derivative(Term of, int variable) {
  const Term zero = constant(0.0);
  const Term one = constant(1.0);
  const auto numBefore = static_cast<std::size_t>(of) + 1;  // the derivatives are appended as new terms
  const std::vector<bool> isNeeded = reached(std::span(&of, 1));
  std::vector<Term> inner(numBefore, zero);
  for (std::size_t i = 0; i < numBefore; ++i) {
    const auto term = static_cast<Term>(i);
    const Node here = node(term);
    if (!isNeeded[i] || here.opcode == Opcode::Constant) continue;
    if (here.opcode == Opcode::Load) {
      inner[i] = here.a == variable ? one : zero;
      continue;
    }
    const bool depends = inner[static_cast<std::size_t>(here.a)] != zero ||
                         (here.b >= 0 && inner[static_cast<std::size_t>(here.b)] != zero);
    if (depends) inner[i] = slopeOf(term, inner);
  }
  return inner.back();
}

// ---- reading

std::vector<bool> FormulaExpression::reached(std::span<const Term> terms) const {
  std::vector<bool> isReached(m_terms.size(), false);
  for (const Term term : terms) isReached[static_cast<std::size_t>(term)] = true;
  for (std::size_t i = m_terms.size(); i-- > 0;) {
    if (!isReached[i] || isLeaf(m_terms[i].opcode)) continue;
    for (const int operand : {m_terms[i].a, m_terms[i].b})
      if (operand >= 0) isReached[static_cast<std::size_t>(operand)] = true;
  }
  return isReached;
}

std::vector<int> FormulaExpression::variablesOf(Term term) const {
  const std::vector<bool> isReached = reached(std::span(&term, 1));
  std::vector<int> variables;
  for (std::size_t i = 0; i < m_terms.size(); ++i)
    if (isReached[i] && m_terms[i].opcode == Opcode::Load) variables.push_back(m_terms[i].a);
  std::ranges::sort(variables);
  return variables;
}

std::int64_t FormulaExpression::numOperations(std::span<const Term> terms) const {
  const std::vector<bool> isReached = reached(terms);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < m_terms.size(); ++i)
    if (isReached[i] && !isLeaf(m_terms[i].opcode)) ++count;
  return count;
}

void FormulaExpression::evaluate(std::span<const double> variables, std::span<double> values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Node& here = m_terms[i];
    const auto at = [&](int operand) { return operand < 0 ? 0.0 : values[static_cast<std::size_t>(operand)]; };
    if (here.opcode == Opcode::Load)
      values[i] = variables[static_cast<std::size_t>(here.a)];
    else if (here.opcode == Opcode::Constant)
      values[i] = here.constant;
    else
      values[i] = evaluateOpcode(here.opcode, at(here.a), at(here.b));
  }
}

std::vector<ValueIndex> FormulaExpression::emit(ElementwiseBuilder& e, std::span<const Term> terms,
                                                const std::function<ValueIndex(int variable)>& load) const {
  const std::vector<bool> isReached = reached(terms);
  std::vector<ValueIndex> values(m_terms.size(), -1);
  for (std::size_t i = 0; i < m_terms.size(); ++i) {
    if (!isReached[i]) continue;
    const Node& here = m_terms[i];
    const auto at = [&](int operand) { return values[static_cast<std::size_t>(operand)]; };
    if (here.opcode == Opcode::Load)
      values[i] = load(here.a);
    else if (here.opcode == Opcode::Constant)
      values[i] = e.constant(here.constant);
    else
      values[i] = here.b < 0 ? e.unary(here.opcode, at(here.a)) : e.binary(here.opcode, at(here.a), at(here.b));
  }
  std::vector<ValueIndex> results;
  for (const Term term : terms) results.push_back(values[static_cast<std::size_t>(term)]);
  return results;
}

// ---- printing

/// About how long the text would be: shared terms are printed each time, so it can grow exponentially.
double FormulaExpression::textLength(Term term) const {
  constexpr double kOfEachTerm = 5.0;
  std::vector<double> lengths(static_cast<std::size_t>(term) + 1, kOfEachTerm);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (!isLeaf(m_terms[i].opcode))
      for (const int operand : {m_terms[i].a, m_terms[i].b})
        if (operand >= 0) lengths[i] += lengths[static_cast<std::size_t>(operand)];
  return lengths.back();
}

int FormulaExpression::precedence(Term term) const {
  const Node& here = node(term);
  switch (here.opcode) {
    case Opcode::Less: return kComparison;
    case Opcode::Add:
    case Opcode::Sub: return kSum;
    case Opcode::Mul: return here.a == here.b ? kPower : kProduct;
    case Opcode::Div: return kProduct;
    case Opcode::Neg: return kNegation;
    case Opcode::Constant: return here.constant < 0.0 ? kNegation : kPrimary;
    default: return kPrimary;
  }
}

std::string FormulaExpression::wrapped(Term term, int least, const std::vector<std::string>& names) const {
  return precedence(term) < least ? fmt::format("({})", print(term, names)) : print(term, names);
}

std::string FormulaExpression::print(Term term, const std::vector<std::string>& names) const {
  const Node& here = node(term);
  if (here.opcode == Opcode::Load) return names[static_cast<std::size_t>(here.a)];
  if (here.opcode == Opcode::Constant) return fmt::format("{}", here.constant);
  if (here.opcode == Opcode::Neg) return fmt::format("-{}", wrapped(here.a, kNegation, names));
  if (here.opcode == Opcode::Mul && here.a == here.b) return wrapped(here.a, kPrimary, names) + "^2";
  const int own = precedence(term);
  if (const std::string_view sign = infixSign(here.opcode); !sign.empty()) {
    const int left = here.opcode == Opcode::Less ? kSum : own;
    return fmt::format("{}{}{}", wrapped(here.a, left, names), sign, wrapped(here.b, own + 1, names));
  }
  const std::string second = isBinary(here.opcode) ? fmt::format(", {}", print(here.b, names)) : "";
  return fmt::format("{}({}{})", opcodeName(here.opcode), print(here.a, names), second);
}

std::string FormulaExpression::text(Term term, const std::vector<std::string>& names) const {
  if (textLength(term) <= kLongestText) return print(term, names);
  return fmt::format("(an expression of {} operations, too long to show)", numOperations(std::span(&term, 1)));
}

}  // namespace fuseline
