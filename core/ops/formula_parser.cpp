// A recursive-descent parser:
//   comparison = sum [("<" | ">") sum]
//   sum = product {("+" | "-") product}
//   product = negation {("*" | "/") negation}
//   negation = "-" negation | power
//   power = primary ["^" negation]
//   primary = number | name | function "(" comparison {"," comparison} ")" | "(" comparison ")"
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/formula_parser.h"

#include "core/support/text.h"
#include "core/support/text_scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::size_t kLongestFormula = 1000;
constexpr int kDeepestNesting = 64;
constexpr std::size_t kLongestName = 40;
/// Programs compute in float32.
constexpr double kLargestNumber = std::numeric_limits<float>::max();

struct FormulaFunction {
  std::string_view name;
  std::size_t numArguments = 1;
  Term (*make)(FormulaExpression&, std::span<const Term>) = nullptr;
};

template <Opcode opcode>
constexpr FormulaFunction oneOpcode(std::string_view name) {
  if constexpr (opcode == Opcode::Max || opcode == Opcode::Min)
    return {name, 2, [](FormulaExpression& e, std::span<const Term> of) { return e.binary(opcode, of[0], of[1]); }};
  else
    return {name, 1, [](FormulaExpression& e, std::span<const Term> of) { return e.unary(opcode, of[0]); }};
}

/// pow is not among them: its second argument is a number.
constexpr std::array kFunctions = {
    oneOpcode<Opcode::Exp>("exp"),
    oneOpcode<Opcode::Log>("log"),
    oneOpcode<Opcode::Sqrt>("sqrt"),
    oneOpcode<Opcode::Rsqrt>("rsqrt"),
    oneOpcode<Opcode::Tanh>("tanh"),
    oneOpcode<Opcode::Erf>("erf"),
    oneOpcode<Opcode::Sigmoid>("sigmoid"),
    oneOpcode<Opcode::Silu>("silu"),
    oneOpcode<Opcode::Gelu>("gelu"),
    FormulaFunction{"relu", 1, [](FormulaExpression& e, std::span<const Term> of) { return e.relu(of[0]); }},
    FormulaFunction{"softplus", 1, [](FormulaExpression& e, std::span<const Term> of) { return e.softplus(of[0]); }},
    FormulaFunction{"abs", 1, [](FormulaExpression& e, std::span<const Term> of) { return e.absolute(of[0]); }},
    FormulaFunction{"square", 1, [](FormulaExpression& e, std::span<const Term> of) { return e.power(of[0], 2.0); }},
    oneOpcode<Opcode::Max>("max"),
    oneOpcode<Opcode::Min>("min"),
    FormulaFunction{"where", 3,
                    [](FormulaExpression& e, std::span<const Term> of) { return e.where(of[0], of[1], of[2]); }},
};
constexpr std::string_view kPow = "pow";

std::vector<std::string> functionNames() {
  std::vector<std::string> names;
  for (const FormulaFunction& function : kFunctions) names.emplace_back(function.name);
  names.emplace_back(kPow);
  return names;
}

bool isControl(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }
/// A byte that continues a UTF-8 character.
bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Keeps the first problem.
class Scanner : public TextScanner {
 public:
  using TextScanner::TextScanner;

  void expect(char c, std::string_view after) {
    if (!take(c)) fail(fmt::format("expected \"{}\" {}, found {}", c, after, found()));
  }
  std::string name() { return std::string(takeWhile(isNamePart)); }
  double number() {
    double value = 0.0;
    const char first = peek();
    const int column = this->column();
    const std::string_view text = rest();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    // from_chars takes "inf" and "nan", too.
    if ((!isDigit(first) && first != '.') || error == std::errc::invalid_argument) {
      fail(fmt::format("expected a number, found {}", found()));
      return 0.0;
    }
    advance(static_cast<std::size_t>(end - text.data()));
    if (error == std::errc::result_out_of_range || std::abs(value) > kLargestNumber)
      failAt(column, "this number is out of range for f32");
    return value;
  }

  /// The current token, for messages.
  std::string found() {
    if (isAtEnd()) return "the end";
    if (isControl(here())) return fmt::format("the character 0x{:02x}", here());
    const std::string_view text = rest();
    const auto belongs = isNamePart(here()) ? isNamePart : isContinuation;
    std::size_t size = 1;
    while (size < text.size() && size < kLongestName && belongs(text[size])) ++size;
    return fmt::format("\"{}\"", text.substr(0, size));
  }
  int column() {
    peek();
    return static_cast<int>(position()) + 1;
  }
  void fail(const std::string& message) { failAt(column(), message); }
  void failAt(int column, const std::string& message) {
    if (m_problem) return;
    stop();
    const bool isQuestion = message.ends_with('?');
    m_problem = Error{fmt::format("column {}: {}{}", column, message, isQuestion ? "" : ".")};
  }
  const std::optional<Error>& problem() const { return m_problem; }

 private:
  std::optional<Error> m_problem;
};

/// Empty where none is near; one letter is as near as any other.
std::string hintFor(const std::string& name, const std::vector<std::string>& candidates) {
  const std::string near = name.size() > 1 ? nearest(name, candidates) : std::string();
  return near.empty() ? std::string() : didYouMean(near);
}

std::string shortName(const std::string& name) { return cutText(name, kLongestName); }

class FormulaParser {
 public:
  FormulaParser(std::string_view text, const FormulaNames& names, FormulaExpression& expression)
      : m_scanner(text), m_names(names), m_expression(expression) {}

  Result<Term> run() {
    const Term term = comparison();
    if (!m_scanner.isAtEnd())
      m_scanner.fail(fmt::format("expected an operator or the end, found {}", m_scanner.found()));
    if (m_scanner.problem()) return *m_scanner.problem();
    return term;
  }

 private:
  // After a problem terms are of no use, but must exist.
  Term nothing() { return m_expression.constant(0.0); }

  Term failed(int column, const std::string& message) {
    m_scanner.failAt(column, message);
    return nothing();
  }

  /// A constant part is computed here, and must be a number that programs can hold.
  Term checked(Term term, int column) {
    const auto value = m_expression.constantValue(term);
    if (!value || (std::isfinite(*value) && std::abs(*value) <= kLargestNumber)) return term;
    return failed(column, fmt::format("{} is out of range for f32", *value));
  }

  Term binary(Opcode opcode, Term a, Term b, int column) { return checked(m_expression.binary(opcode, a, b), column); }

  Term comparison() {
    const Term a = sum();
    const char sign = m_scanner.peek();
    if (sign != '<' && sign != '>') return a;
    const int column = m_scanner.column();
    m_scanner.take(sign);
    const Term b = sum();
    if (const char next = m_scanner.peek(); next == '<' || next == '>')
      m_scanner.fail("comparisons cannot be chained; use parentheses");
    return sign == '<' ? binary(Opcode::Less, a, b, column) : binary(Opcode::Less, b, a, column);
  }

  Term sum() {
    Term value = product();
    for (char sign = m_scanner.peek(); sign == '+' || sign == '-'; sign = m_scanner.peek()) {
      const int column = m_scanner.column();
      m_scanner.take(sign);
      value = binary(sign == '+' ? Opcode::Add : Opcode::Sub, value, product(), column);
    }
    return value;
  }

  Term product() {
    Term value = negation();
    for (char sign = m_scanner.peek(); sign == '*' || sign == '/'; sign = m_scanner.peek()) {
      const int column = m_scanner.column();
      m_scanner.take(sign);
      value = binary(sign == '*' ? Opcode::Mul : Opcode::Div, value, negation(), column);
    }
    return value;
  }

  Term negation() {
    if (m_scanner.peek() != '-') return power();
    const Nested nested(*this);
    m_scanner.take('-');
    return m_expression.unary(Opcode::Neg, negation());
  }

  Term power() {
    const Term base = primary();
    if (m_scanner.peek() != '^') return base;
    const Nested nested(*this);
    const int column = m_scanner.column();
    m_scanner.take('^');
    const int exponentColumn = m_scanner.column();
    return raised(base, negation(), column, exponentColumn);
  }

  Term raised(Term base, Term exponent, int column, int exponentColumn) {
    const auto value = m_expression.constantValue(exponent);
    if (value) return checked(m_expression.power(base, *value), column);
    return failed(exponentColumn, "the exponent must be a number; write exp(b * log(a)) for a^b, which needs a > 0");
  }

  Term primary() {
    const char c = m_scanner.peek();
    if (isDigit(c) || c == '.') return m_expression.constant(m_scanner.number());
    if (isNameStart(c)) return named();
    const int column = m_scanner.column();
    if (c != '(') return failed(column, fmt::format("expected a number, a name or \"(\", found {}", m_scanner.found()));
    const Nested nested(*this);
    m_scanner.take('(');
    const Term value = comparison();
    m_scanner.expect(')', "here");
    return value;
  }

  Term named() {
    const int column = m_scanner.column();
    const std::string name = m_scanner.name();
    if (name == kPow || findFunction(name)) return call(name, column);
    if (const auto found = std::ranges::find(m_names.variables, name); found != m_names.variables.end())
      return m_expression.variable(static_cast<int>(found - m_names.variables.begin()));
    for (const auto& [known, value] : m_names.constants)
      if (known == name) return m_expression.constant(value);
    return unknown(name, column);
  }

  Term unknown(const std::string& name, int column) {
    const bool isCall = m_scanner.peek() == '(';
    std::vector<std::string> constants;
    for (const auto& [constant, value] : m_names.constants) constants.push_back(constant);
    const std::vector<std::string>& named = m_names.variables.empty() ? constants : m_names.variables;
    std::vector<std::string> known = functionNames();
    if (!isCall) {
      known.insert(known.begin(), m_names.variables.begin(), m_names.variables.end());
      known.insert(known.end(), constants.begin(), constants.end());
    }
    const std::string hint = hintFor(shortName(name), known);
    const std::string list = isCall          ? fmt::format("; the functions are {}", fmt::join(known, ", "))
                             : named.empty() ? "."
                                             : fmt::format("; the names are {}", fmt::join(named, ", "));
    return failed(column, fmt::format("unknown {} {}{}", isCall ? "function" : "name", shortName(name),
                                      hint.empty() ? list : hint));
  }

  static const FormulaFunction* findFunction(std::string_view name) {
    const auto* const found = std::ranges::find(kFunctions, name, &FormulaFunction::name);
    return found == kFunctions.end() ? nullptr : found;
  }

  Term call(const std::string& name, int column) {
    const Nested nested(*this);
    m_scanner.expect('(', "after " + name);
    std::vector<Term> arguments;
    std::vector<int> columns;
    do {
      columns.push_back(m_scanner.column());
      arguments.push_back(comparison());
    } while (m_scanner.take(','));
    m_scanner.expect(')', "after the arguments of " + name);
    if (m_scanner.problem()) return nothing();
    const FormulaFunction* const function = findFunction(name);
    const std::size_t expected = function ? function->numArguments : 2;
    if (arguments.size() != expected)
      return failed(column, fmt::format("{} takes {} argument{}, found {}", name, expected, expected == 1 ? "" : "s",
                                        arguments.size()));
    if (!function) return raised(arguments[0], arguments[1], column, columns[1]);
    return checked(function->make(m_expression, arguments), column);
  }

  /// Counts how deep the parser is, so that no text can exhaust the stack.
  class Nested {
   public:
    explicit Nested(FormulaParser& parser) : m_depth(parser.m_depth) {
      if (++m_depth > kDeepestNesting)
        parser.m_scanner.fail(fmt::format("the formula is nested more than {} deep", kDeepestNesting));
    }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --m_depth; }

   private:
    int& m_depth;
  };

  Scanner m_scanner;
  const FormulaNames& m_names;
  FormulaExpression& m_expression;
  int m_depth = 0;
};

std::optional<Error> checkLength(std::string_view text) {
  if (text.size() <= kLongestFormula) return std::nullopt;
  return Error{fmt::format("column {}: the text has {} characters; at most {} are read.", kLongestFormula + 1,
                           text.size(), kLongestFormula)};
}

/// "[H]" or "[1]" after a name. Is it [1]?
bool scanShape(Scanner& scanner) {
  if (!scanner.take('[')) return false;
  const bool isScalar = scanner.take('1');
  if (!isScalar && !scanner.take('H'))
    scanner.fail(fmt::format("expected [H], one value per column, or [1], a single value; found {}", scanner.found()));
  scanner.expect(']', "here");
  return isScalar;
}

DeclaredName scanEntry(Scanner& scanner, EntryForm form) {
  DeclaredName entry{.column = scanner.column()};
  if (!isNameStart(scanner.peek())) {
    scanner.fail(fmt::format("expected a name, found {}", scanner.found()));
    return entry;
  }
  entry.name = scanner.name();
  if (form == EntryForm::NameWithNumber) entry.isScalar = scanShape(scanner);
  if (form != EntryForm::Name && scanner.take('=')) {
    const bool isNegative = scanner.take('-');
    const double magnitude = scanner.number();
    entry.value = isNegative ? -magnitude : magnitude;
  } else if (form == EntryForm::NameAndNumber) {
    scanner.expect('=', fmt::format("and a number after {}", shortName(entry.name)));
  }
  return entry;
}

}  // namespace

Result<Term> parseFormula(std::string_view text, const FormulaNames& names, FormulaExpression& expression) {
  if (auto error = checkLength(text)) return *error;
  return FormulaParser(text, names, expression).run();
}

Result<std::vector<DeclaredName>> parseNames(std::string_view text, EntryForm form) {
  if (auto error = checkLength(text)) return *error;
  Scanner scanner(text);
  std::vector<DeclaredName> entries;
  if (scanner.isAtEnd()) return entries;
  do {
    entries.push_back(scanEntry(scanner, form));
  } while (!scanner.problem() && scanner.take(','));
  if (!scanner.isAtEnd()) scanner.fail(fmt::format("expected \",\" or the end, found {}", scanner.found()));
  if (scanner.problem()) return *scanner.problem();
  return entries;
}

std::optional<Error> checkFormulaName(const DeclaredName& declared, const std::vector<std::string>& taken) {
  const auto refuse = [&](std::string_view why) {
    return Error{fmt::format("column {}: {} {}; choose another name.", declared.column, shortName(declared.name), why)};
  };
  if (declared.name.size() > kLongestName) return refuse(fmt::format("has more than {} characters", kLongestName));
  if (declared.name == "x") return refuse("is the main input");
  if (declared.name == "y") return refuse("is the output");
  const std::vector<std::string> functions = functionNames();
  if (std::ranges::find(functions, declared.name) != functions.end()) return refuse("is a function");
  if (std::ranges::find(taken, declared.name) != taken.end()) return refuse("is already taken");
  return std::nullopt;
}

std::string formulaHelp() {
  return fmt::format(
      "A formula is made of numbers, names, + - * /, ^ with a number as exponent, < and > (1 or 0), and parentheses.\n"
      "Functions: {}.\n"
      "pow(a, 3) is a^3. where(c, a, b) is c * a + (1 - c) * b, so both must be finite.\n"
      "inputs:     \"b, mask\"                    more tensors of the shape of x\n"
      "parameters: \"alpha = 0.25, beta[1] = 1\"  learned: a vector [H], or with [1] one number; with first values\n"
      "constants:  \"limit = 7\"                  fixed numbers\n"
      "At most {} characters, nested at most {} deep. At the kinks of max, min, abs and relu the derivative is 0.",
      fmt::join(functionNames(), ", "), kLongestFormula, kDeepestNesting);
}

}  // namespace fuseline
