// The formula language: its results, its derivatives, and its messages about invalid texts.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"
#include "core/ops/formula_parser.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

const FormulaNames kNames{.variables = {"x", "b"}, .constants = {{"half", 0.5}}};

/// A formula of x and b, with its derivatives.
struct Parsed {
  FormulaExpression expression;
  Term term = 0;

  explicit Parsed(const std::string& text) {
    const Result<Term> parsed = parseFormula(text, kNames, expression);
    if (!parsed) throw std::invalid_argument(text + ": " + parsed.error().message);
    term = *parsed;
  }
  double valueOf(Term which, double x, double b) const {
    std::vector<double> values(static_cast<std::size_t>(which) + 1);
    expression.evaluate(std::vector{x, b}, values);
    return values.back();
  }
  double at(double x, double b = 0.0) const { return valueOf(term, x, b); }
  double slopeAt(int variable, double x, double b = 0.0) {
    const Term slope = expression.derivative(term, variable);
    return valueOf(slope, x, b);
  }
  std::string text() const { return expression.text(term, kNames.variables); }
  std::string slopeText(int variable) {
    return expression.text(expression.derivative(term, variable), kNames.variables);
  }
};

std::string errorOf(const std::string& text) {
  FormulaExpression expression;
  const Result<Term> parsed = parseFormula(text, kNames, expression);
  return parsed ? "" : parsed.error().message;
}

TEST(Formula, FollowsThePrecedenceOfMathematics) {
  EXPECT_EQ(Parsed("1 + 2 * 3 - 4 / 8").at(0), 6.5);
  EXPECT_EQ(Parsed("2 - 3 - 4").at(0), -5);
  EXPECT_EQ(Parsed("-x^2").at(3), -9);
  EXPECT_EQ(Parsed("2^3^2").at(0), 512);
  EXPECT_EQ(Parsed("x * -b").at(3, 2), -6);
  EXPECT_EQ(Parsed("2 * (x + b)").at(3, 2), 10);
  EXPECT_EQ(Parsed("x + 1 < b * 2").at(3, 2), 0);
  EXPECT_EQ(Parsed("x > b").at(3, 2), 1);
  EXPECT_EQ(Parsed(" .5\t*\n x ").at(3), 1.5);
  EXPECT_EQ(Parsed("half * 1e2").at(0), 50);
}

TEST(Formula, KnowsItsFunctions) {
  EXPECT_DOUBLE_EQ(Parsed("exp(x)").at(1.5), 4.4816890703380645);
  EXPECT_DOUBLE_EQ(Parsed("log(x)").at(2), 0.6931471805599453);
  EXPECT_DOUBLE_EQ(Parsed("sqrt(x) * rsqrt(b)").at(9, 4), 1.5);
  EXPECT_DOUBLE_EQ(Parsed("tanh(x)").at(0.5), 0.46211715726000973);
  EXPECT_DOUBLE_EQ(Parsed("erf(x)").at(0.5), 0.5204998778130465);
  EXPECT_DOUBLE_EQ(Parsed("sigmoid(x)").at(-1), 0.2689414213699951);
  EXPECT_DOUBLE_EQ(Parsed("silu(x)").at(1), 0.7310585786300049);
  EXPECT_NEAR(Parsed("gelu(x)").at(1), 0.841191990607477, 1e-12);
  EXPECT_EQ(Parsed("relu(x) + abs(b)").at(-3, -2), 2);
  EXPECT_DOUBLE_EQ(Parsed("softplus(x)").at(1), 1.3132616875182228);
  EXPECT_EQ(Parsed("square(x) + max(x, b) + min(x, b)").at(3, 7), 19);
  EXPECT_EQ(Parsed("where(x < b, x, 10 * b)").at(1, 2), 1);
  EXPECT_EQ(Parsed("where(x < b, x, 10 * b)").at(3, 2), 20);
  EXPECT_DOUBLE_EQ(Parsed("pow(x, 3) + x^-2 + x^0.5").at(4), 66.0625);
  EXPECT_DOUBLE_EQ(Parsed("x^1.7").at(2), std::pow(2.0, 1.7));
}

TEST(Formula, StaysFiniteWhereTheTextbookFormDoesNot) {
  EXPECT_EQ(Parsed("softplus(x)").at(1000), 1000);
  EXPECT_EQ(Parsed("softplus(x)").at(-1000), 0);
  EXPECT_EQ(Parsed("softplus(x)").slopeAt(0, 0), 0.5);
  EXPECT_EQ(Parsed("softplus(x)").slopeAt(0, 1000), 1);
  EXPECT_EQ(Parsed("softplus(x)").slopeAt(0, -1000), 0);
  EXPECT_EQ(Parsed("sigmoid(x)").at(-1000), 0);
  EXPECT_GT(Parsed("sigmoid(x)").slopeAt(0, 40), 0);  // 1 - sigmoid would be 0
}

TEST(Formula, HasTheSlopeZeroWhereItBends) {
  for (const char* text : {"relu(x)", "abs(x)", "max(x, b)", "min(x, b)", "where(x < b, 2, 3)"}) {
    EXPECT_EQ(Parsed(text).slopeAt(0, 0, 0), 0) << text;
    EXPECT_EQ(Parsed(text).slopeAt(1, 0, 0), 0) << text;
  }
}

TEST(Formula, PassesNanThroughMaxMinAndComparisons) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* text : {"relu(x)", "min(x, b)", "x < b", "max(b, x)", "where(x < b, 2, 3)"})
    EXPECT_TRUE(std::isnan(Parsed(text).at(nan))) << text;
}

TEST(Formula, PrintsReadableDerivatives) {
  EXPECT_EQ(Parsed("x * b").slopeText(0), "b");
  EXPECT_EQ(Parsed("x + b").slopeText(1), "1");
  EXPECT_EQ(Parsed("half * x^2").slopeText(0), "0.5 * (2 * x)");
  EXPECT_EQ(Parsed("x^3").slopeText(0), "3 * x^2");
  EXPECT_EQ(Parsed("relu(x)").slopeText(0), "0 < x");
  EXPECT_EQ(Parsed("exp(-b)").slopeText(1), "-exp(-b)");
  EXPECT_EQ(Parsed("x / b").slopeText(1), "-(x / b) / b");
  EXPECT_EQ(Parsed("tanh(b)").slopeText(0), "0");
}

TEST(Formula, SaysWhereItIsWrongAndWhatWouldBeRight) {
  EXPECT_EQ(errorOf("x * sigmod(x)"), "column 5: unknown function sigmod; did you mean sigmoid?");
  EXPECT_EQ(errorOf("x * hal"), "column 5: unknown name hal; did you mean half?");
  EXPECT_EQ(errorOf("x * gamma"), "column 5: unknown name gamma; the names are x, b.");
  EXPECT_EQ(errorOf(""), "column 1: expected a number, a name or \"(\", found the end.");
  EXPECT_EQ(errorOf("x + "), "column 5: expected a number, a name or \"(\", found the end.");
  EXPECT_EQ(errorOf("(x + b"), "column 7: expected \")\" here, found the end.");
  EXPECT_EQ(errorOf("x b"), "column 3: expected an operator or the end, found \"b\".");
  EXPECT_EQ(errorOf("x; b"), "column 2: expected an operator or the end, found \";\".");
  EXPECT_EQ(errorOf("x + \u03b1"), "column 5: expected a number, a name or \"(\", found \"\u03b1\".");
  EXPECT_EQ(errorOf(std::string("x\0b", 3)), "column 2: expected an operator or the end, found the character 0x00.");
  EXPECT_EQ(errorOf("exp x"), "column 5: expected \"(\" after exp, found \"x\".");
  EXPECT_EQ(errorOf("max(x)"), "column 1: max takes 2 arguments, found 1.");
  EXPECT_EQ(errorOf("x^b"),
            "column 3: the exponent must be a number; write exp(b * log(a)) for a^b, which needs a > 0.");
  EXPECT_EQ(errorOf("0 < x < b"), "column 7: comparisons cannot be chained; use parentheses.");
  EXPECT_EQ(errorOf("x + 1 / 0"), "column 7: inf is out of range for f32.");
  EXPECT_EQ(errorOf("x + 1e39"), "column 5: this number is out of range for f32.");
  EXPECT_EQ(errorOf(std::string(65, '(') + "x" + std::string(65, ')')),
            "column 65: the formula is nested more than 64 deep.");
  EXPECT_EQ(errorOf(std::string(65, '-') + "x"), "column 65: the formula is nested more than 64 deep.");
  EXPECT_EQ(errorOf(std::string(1001, ' ')), "column 1001: the text has 1001 characters; at most 1000 are read.");
}

std::string namesError(const std::string& text, EntryForm form) {
  const auto names = parseNames(text, form);
  return names ? "" : names.error().message;
}

TEST(Formula, ReadsLists) {
  EXPECT_TRUE(parseNames("  ", EntryForm::Name)->empty());
  const auto names = *parseNames("alpha = -0.25, beta[1] = 1, gamma[H]", EntryForm::NameWithNumber);
  ASSERT_EQ(names.size(), 3U);
  EXPECT_EQ(names[0].value, -0.25);
  EXPECT_FALSE(names[0].isScalar);
  EXPECT_TRUE(names[1].isScalar);
  EXPECT_EQ(names[2].value, std::nullopt);
  EXPECT_EQ(names[2].column, 29);
}

TEST(Formula, SaysWhatIsWrongWithAList) {
  EXPECT_EQ(namesError("a, ,b", EntryForm::Name), "column 4: expected a name, found \",\".");
  EXPECT_EQ(namesError("a b", EntryForm::Name), "column 3: expected \",\" or the end, found \"b\".");
  EXPECT_EQ(namesError("a = 1", EntryForm::Name), "column 3: expected \",\" or the end, found \"=\".");
  EXPECT_EQ(namesError("a", EntryForm::NameAndNumber), "column 2: expected \"=\" and a number after a, found the end.");
  EXPECT_EQ(namesError("a = inf", EntryForm::NameAndNumber), "column 5: expected a number, found \"inf\".");
  EXPECT_EQ(namesError("a[2] = 1", EntryForm::NameWithNumber),
            "column 3: expected [H], one value per column, or [1], a single value; found \"2\".");
}

// ---- properties

/// A formula over x and b that is smooth and tame where both are between 0.5 and 2.
std::string randomFormula(int depth) {
  if (depth == 0) return *rc::gen::element<std::string>("x", "b", "half", "1.5", "3");
  const std::string a = randomFormula(depth - 1);
  switch (*rc::gen::inRange(0, 8)) {
    case 0: return fmt::format("({} + {})", a, randomFormula(depth - 1));
    case 1: return fmt::format("({} - {})", a, randomFormula(depth - 1));
    case 2: return fmt::format("tanh({}) * tanh({})", a, randomFormula(depth - 1));
    case 3: return fmt::format("{} / (2 + square({}))", a, randomFormula(depth - 1));
    case 4: return fmt::format("-{}", a);
    case 5: return fmt::format("pow(1 + square({}), {})", a, *rc::gen::element<std::string>("0.25", "-1", "-0.5"));
    case 6: return fmt::format("log(1 + square({}))", a);
    default:
      return fmt::format("{}({})", *rc::gen::element<std::string>("sigmoid", "silu", "gelu", "softplus", "tanh", "erf"),
                         a);
  }
}

double randomNumber() { return 0.5 + 1.5 * *rc::gen::inRange(0, 10000) / 10000.0; }

TEST(Formula, DerivativesAgreeWithFiniteDifferences) {
  EXPECT_TRUE(rc::check("derivative equals central difference", [] {
    const std::string text = randomFormula(*rc::gen::inRange(0, 5));
    Parsed formula(text);
    const double x = randomNumber();
    const double b = randomNumber();
    constexpr double kStep = 1e-5;
    const double byX = (formula.at(x + kStep, b) - formula.at(x - kStep, b)) / (2 * kStep);
    const double byB = (formula.at(x, b + kStep) - formula.at(x, b - kStep)) / (2 * kStep);
    RC_LOG() << text << " at " << x << ", " << b << "\n";
    RC_ASSERT(std::abs(formula.slopeAt(0, x, b) - byX) < 1e-6 * (1 + std::abs(byX)));
    RC_ASSERT(std::abs(formula.slopeAt(1, x, b) - byB) < 1e-6 * (1 + std::abs(byB)));
  }));
}

// Bends included, away from which the slopes on both sides are those of the pieces.
TEST(Formula, DerivativesOfBendingFunctionsAgreeOffTheBend) {
  for (const char* text : {"relu(x) * b", "abs(x - b)", "max(x * x, b)", "min(x, 2 * b)", "where(x < b, x * b, x^3)"})
    for (const double x : {-1.7, 0.3, 2.9}) {
      Parsed formula(text);
      constexpr double kStep = 1e-6;
      const double b = 1.1;
      EXPECT_NEAR(formula.slopeAt(0, x, b), (formula.at(x + kStep, b) - formula.at(x - kStep, b)) / (2 * kStep), 1e-6)
          << text << " at " << x;
      EXPECT_NEAR(formula.slopeAt(1, x, b), (formula.at(x, b + kStep) - formula.at(x, b - kStep)) / (2 * kStep), 1e-6)
          << text << " at " << x;
    }
}

TEST(Formula, WhatIsPrintedMeansTheSame) {
  EXPECT_TRUE(rc::check("text can be read again", [] {
    const Parsed formula(randomFormula(*rc::gen::inRange(0, 4)));
    const std::string text = formula.text();
    if (text.find("too long") != std::string::npos) return;
    RC_LOG() << text << "\n";
    const double x = randomNumber();
    const double b = randomNumber();
    RC_ASSERT(std::abs(Parsed(text).at(x, b) - formula.at(x, b)) <= 1e-12 * (1 + std::abs(formula.at(x, b))));
  }));
}

bool hasColumn(const std::string& message, std::size_t length) {
  std::size_t column = 0;
  for (std::size_t i = 7; i < message.size() && std::isdigit(static_cast<unsigned char>(message[i])); ++i)
    column = column * 10 + static_cast<std::size_t>(message[i] - '0');
  const bool isSentence = message.ends_with('.') || message.ends_with('?');
  return message.starts_with("column ") && column >= 1 && column <= length + 1 && isSentence;
}

template <class T>
bool isReadOrHasColumn(const Result<T>& result, const std::string& text) {
  return result.hasValue() || hasColumn(result.error().message, text.size());
}

/// Texts of the language's own pieces, so that many get far before they fail.
std::string randomText() {
  static const std::vector<std::string> kPieces = {
      "x",      "b",    "half", "1",    "2.5e3", "+",         "-",
      "*",      "/",    "^",    "(",    ")",     ",",         "<",
      ">",      "exp(", "max(", "pow(", " ",     "softplus(", "where(",
      "sigmod", "[",    "]",    "=",    ".",     "\xce\xb1",  std::string(1, '\0'),
      "e",      "\n"};
  std::string text;
  for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kPieces)))
    text += piece;
  return text;
}

TEST(Formula, AnyTextIsAFormulaOrHasAnErrorWithAColumn) {
  EXPECT_TRUE(rc::check("any text", [] {
    const std::string text = *rc::gen::arbitrary<bool>() ? randomText() : *rc::gen::arbitrary<std::string>();
    FormulaExpression expression;
    const Result<Term> parsed = parseFormula(text, kNames, expression);
    RC_ASSERT(isReadOrHasColumn(parsed, text));
    if (!parsed) return;
    for (const int variable : {0, 1}) (void)expression.text(expression.derivative(*parsed, variable), kNames.variables);
  }));
}

TEST(Formula, AnyListIsReadOrHasAnErrorWithAColumn) {
  EXPECT_TRUE(rc::check("any list", [] {
    const std::string text = randomText();
    for (const EntryForm form : {EntryForm::Name, EntryForm::NameAndNumber, EntryForm::NameWithNumber}) {
      const auto names = parseNames(text, form);
      RC_ASSERT(isReadOrHasColumn(names, text));
    }
  }));
}

// ---- the op

Attributes attributesOf(const std::vector<std::pair<std::string, std::string>>& given) {
  Attributes attributes = defaultAttributes(*builtinOperations().find("Formula"));
  for (const auto& [name, value] : given) attributes.set(name, value);
  return attributes;
}

Result<OperationPointer> formulaWith(const std::vector<std::pair<std::string, std::string>>& given) {
  return specialised(*builtinOperations().find("Formula"), attributesOf(given));
}

std::string refusal(const std::vector<std::pair<std::string, std::string>>& given) {
  const Result<OperationPointer> op = formulaWith(given);
  return op ? "" : op.error().subject + " | " + op.error().message;
}

TEST(FormulaOp, HasThePortsAndParametersThatItsAttributesName) {
  const OperationPointer op = *formulaWith(
      {{"y", "alpha * x + beta * b * mask"}, {"inputs", "b, mask"}, {"parameters", "alpha = 0.25, beta[1] = 2"}});
  ASSERT_EQ(op->inputs.size(), 3U);
  EXPECT_EQ(op->inputs[2].name, "mask");
  EXPECT_EQ(op->parameters[0].shape, "[H]");
  EXPECT_EQ(op->parameters[1].shape, "[1]");
  const TensorSpec x{.dtype = DType::BF16, .shape = {4, 6}};
  const std::vector<TensorSpec> inputs = {x, x, x};
  const OperationSpecs specs = *op->infer(attributesOf({}), inputs);
  EXPECT_EQ(specs.outputs, std::vector{x});
  EXPECT_EQ(specs.parameters[0].shape, Shape{6});
  EXPECT_EQ(specs.parameters[1].shape, Shape{1});
  EXPECT_EQ(op->parameters[1].initialise({}, specs.parameters[1]).value, 2.0);
  EXPECT_EQ(op->derivative,
            "dx = dy * (alpha); db = dy * (beta * mask); dmask = dy * (beta * b); dalpha = dy * (x), summed over all "
            "rows; dbeta = dy * (b * mask), summed");
}

TEST(FormulaOp, RefusesInputsOfAnotherShape) {
  const OperationPointer op = *formulaWith({{"y", "x + b"}, {"inputs", "b"}});
  const std::vector<TensorSpec> inputs = {{.shape = {4, 6}}, {.shape = {6}}};
  EXPECT_EQ(op->infer(attributesOf({}), inputs).error().message,
            "Formula: b has the shape [6], but x has the shape [4, 6]; both must be the same.");
}

TEST(FormulaOp, KeepsOnlyWhatTheDerivativesRead) {
  const OperationPointer op = *formulaWith({{"y", "alpha * x + exp(b)"}, {"inputs", "b"}, {"parameters", "alpha = 1"}});
  const std::vector<TensorSpec> inputs = {{.shape = {2}}, {.shape = {2}}};
  const Attributes attributes = attributesOf({});
  const auto saved = [&](bool x, bool b, bool alpha) {
    return op->saveContext({attributes, inputs, {.inputs = {x, b}, .parameters = {alpha}}}).tensors;
  };
  EXPECT_EQ(saved(false, false, false), std::vector<SavedTensor>{});
  EXPECT_EQ(saved(true, false, false), (std::vector<SavedTensor>{{OperandKind::Parameter, 0}}));
  EXPECT_EQ(saved(false, true, false), (std::vector<SavedTensor>{{OperandKind::Input, 1}}));
  EXPECT_EQ(saved(false, false, true), (std::vector<SavedTensor>{{OperandKind::Input, 0}}));
}

TEST(FormulaOp, SaysWhichAttributeIsWrong) {
  EXPECT_EQ(refusal({{"y", "x * sigmod"}}), "y | Formula: y, column 5: unknown name sigmod; did you mean sigmoid?");
  EXPECT_EQ(refusal({{"inputs", "a, x"}}),
            "inputs | Formula: inputs, column 4: x is the main input; choose another name.");
  EXPECT_EQ(refusal({{"inputs", "a"}, {"parameters", "b, a = 2"}}),
            "parameters | Formula: parameters, column 4: a is already taken; choose another name.");
  EXPECT_EQ(refusal({{"constants", "max = 2"}}),
            "constants | Formula: constants, column 1: max is a function; choose another name.");
  EXPECT_EQ(refusal({{"constants", "y = 2"}}),
            "constants | Formula: constants, column 1: y is the output; choose another name.");
  std::string many = "n0";
  for (int i = 1; i < 17; ++i) many += fmt::format(",n{}", i);
  EXPECT_NE(refusal({{"inputs", many}}).find("there are 17 names; at most 16 are possible."), std::string::npos);
}

TEST(FormulaOp, RefusesWhatTheFormulaDoesNotDependOn) {
  EXPECT_EQ(refusal({{"inputs", "a, b"}, {"y", "x * a + 0 * b"}}),
            "inputs | Formula: inputs, column 4: the formula does not depend on b; use it or remove it here.");
  EXPECT_EQ(refusal({{"parameters", "a"}}),
            "parameters | Formula: parameters, column 1: the formula does not depend on a; use it or remove it here.");
  EXPECT_EQ(refusal({{"y", "2"}}), "y | Formula: y, column 1: the formula does not depend on x; it must.");
}

// Every derivative of a product of hundreds of factors has hundreds of operations.
TEST(FormulaOp, RefusesDerivativesBeyondMeasure) {
  std::string inputs;
  for (char name = 'a'; name <= 'p'; ++name) inputs += std::string(inputs.empty() ? "" : ",") + name;
  std::string text = "x";
  for (int i = 0; i < 499; ++i) text += std::string("*") + static_cast<char>('a' + i % 16);
  const std::string message = refusal({{"y", text}, {"inputs", inputs}});
  EXPECT_TRUE(message.starts_with("y | Formula: y, column 1: with its derivatives the formula has ")) << message;
  EXPECT_TRUE(message.ends_with(" operations; at most 4000 are possible. Split it into several ops.")) << message;
}

}  // namespace
}  // namespace fuseline
