// A recursive-descent evaluator: sum = product {+- product}, product = factor {*/ factor}.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/expression.h"

#include "core/support/text.h"
#include "core/support/text_scanner.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr int kMaxNesting = 64;

/// Nothing where there are no digits, or the number does not fit into 64 bits.
std::optional<std::int64_t> valueOf(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

constexpr std::size_t kMostShown = 40;  // bytes of the text, in messages

class Evaluator {
 public:
  Evaluator(std::string_view text, const SymbolLookup& lookup) : m_scanner(text), m_lookup(lookup) {}

  ExpressionValue run() {
    const std::int64_t value = sum();
    if (m_scanner.peek() != '\0') failExpected("an operator", false);
    if (m_problem) return *m_problem;
    return value;
  }

 private:
  using Kind = ExpressionProblem::Kind;

  std::int64_t sum() {
    std::int64_t value = product();
    for (char sign = m_scanner.peek(); sign == '+' || sign == '-'; sign = m_scanner.peek()) {
      const std::size_t place = takeSign();
      const std::int64_t right = product();
      const std::int64_t left = value;
      const bool isTooBig =
          sign == '+' ? __builtin_add_overflow(left, right, &value) : __builtin_sub_overflow(left, right, &value);
      if (isTooBig) failOverflow(place, left, sign, right);
    }
    return value;
  }

  std::int64_t product() {
    std::int64_t value = factor();
    for (char sign = m_scanner.peek(); sign == '*' || sign == '/'; sign = m_scanner.peek()) {
      const std::size_t place = takeSign();
      const std::int64_t right = factor();
      if (m_problem) return 0;
      value = sign == '*' ? times(value, right, place) : divide(value, right, place);
    }
    return value;
  }

  std::size_t takeSign() {
    m_scanner.advance();
    return m_scanner.position() - 1;
  }

  std::int64_t times(std::int64_t a, std::int64_t b, std::size_t place) {
    std::int64_t value = 0;
    if (__builtin_mul_overflow(a, b, &value)) failOverflow(place, a, '*', b);
    return value;
  }

  std::int64_t divide(std::int64_t a, std::int64_t b, std::size_t place) {
    if (b == 0) return failAt(place, Kind::Division, fmt::format("{} is divided by zero", a));
    if (b == -1) return times(a, b, place);
    if (a % b != 0)
      return failAt(place, Kind::Division,
                    fmt::format("{} / {} is not a whole number; the remainder is {}", a, b, a % b));
    return a / b;
  }

  std::int64_t factor() {
    const char c = m_scanner.peek();
    if (m_problem) return 0;
    if (c == '(' || c == '-') return nested(c);
    if (isDigit(c)) return number();
    if (isNameStart(c)) return symbol();
    return failExpected("a number, a symbol or \"(\"", c == '\0');
  }

  std::int64_t nested(char c) {
    if (++m_nesting > kMaxNesting) return fail(Kind::Syntax, "the expression is nested too deeply");
    const std::size_t place = takeSign();
    const std::int64_t value = c == '-' ? times(-1, factor(), place) : sum();
    if (!m_problem && c == '(' && !m_scanner.take(')')) return failExpected("\")\"", m_scanner.isAtEnd());
    --m_nesting;
    return value;
  }

  std::int64_t number() {
    const std::size_t begin = m_scanner.position();
    const std::string_view digits = m_scanner.takeWhile(isDigit);
    if (const std::optional<std::int64_t> value = valueOf(digits)) return *value;
    return failAt(begin, Kind::Overflow, fmt::format("{} does not fit into 64 bits", digits));
  }

  std::int64_t symbol() {
    const std::size_t begin = m_scanner.position();
    const std::string name(m_scanner.takeWhile(isNamePart));
    if (const auto value = m_lookup(name)) return *value;
    failAt(begin, Kind::UnknownSymbol, fmt::format("there is no symbol {}", cutText(name, kMostShown)));
    m_problem->symbol = name;
    return 0;
  }

  void failOverflow(std::size_t place, std::int64_t a, char sign, std::int64_t b) {
    failAt(place, Kind::Overflow, fmt::format("{} {} {} does not fit into 64 bits", a, sign, b));
  }

  std::int64_t failExpected(std::string_view expected, bool isAtEnd) {
    const std::string found = isAtEnd ? "the end" : fmt::format("\"{}\"", cutText(m_scanner.rest(), kMostShown));
    return fail(Kind::Syntax, fmt::format("expected {}, found {}", expected, found));
  }

  std::int64_t fail(Kind kind, std::string message) { return failAt(m_scanner.position(), kind, std::move(message)); }

  std::int64_t failAt(std::size_t place, Kind kind, std::string message) {
    if (!m_problem) m_problem = {kind, static_cast<int>(place) + 1, {}, std::move(message)};
    m_scanner.stop();
    return 0;
  }

  TextScanner m_scanner;
  const SymbolLookup& m_lookup;
  int m_nesting = 0;
  std::optional<ExpressionProblem> m_problem;
};

// Calls use(begin, end) for every name in the text.
template <class Use>
void forEachName(std::string_view text, const Use& use) {
  for (TextScanner scanner(text); !scanner.rest().empty();) {
    const std::size_t begin = scanner.position();
    const bool isName = isNameStart(scanner.here());
    if (scanner.takeWhile(isNamePart).empty()) scanner.advance();
    if (isName) use(begin, scanner.position());
  }
}

constexpr std::int64_t kKilo = 1024;

/// base^exponent; nothing where it does not fit.
std::optional<std::int64_t> power(std::int64_t base, std::int64_t exponent) {
  std::int64_t value = 1;
  for (std::int64_t i = 0; i < exponent && value != 0; ++i)
    if (i >= std::numeric_limits<std::int64_t>::digits || __builtin_mul_overflow(value, base, &value))
      return std::nullopt;
  return value;
}

/// Writes out the numbers of a text that are shortened.
class Shorthand {
 public:
  explicit Shorthand(std::string_view text) : m_scanner(text) {}

  std::string writtenOut() {
    std::string result;
    while (!m_scanner.rest().empty()) result += isDigit(m_scanner.here()) ? number() : other();
    return result;
  }

 private:
  /// A name with its digits, or one character.
  std::string other() {
    return std::string(isNameStart(m_scanner.here()) ? m_scanner.takeWhile(isNamePart) : m_scanner.advance());
  }

  std::string number() {
    const std::string_view text = m_scanner.rest();
    const std::optional<std::int64_t> value = valueOf(m_scanner.takeWhile(isDigit));
    const std::optional<std::int64_t> whole = value ? suffix(*value) : std::nullopt;
    if (whole) return std::to_string(*whole);
    m_scanner.takeWhile(isNamePart);  // "4kg" is no number, and stays as it is
    return std::string(text.substr(0, text.size() - m_scanner.rest().size()));
  }

  /// A suffix of a number counts only if no other character follows it directly.
  std::optional<std::int64_t> suffix(std::int64_t value) {
    if (at() == 'k' || at() == 'K') {
      m_scanner.advance();
      if (isNamePart(at()) || __builtin_mul_overflow(value, kKilo, &value)) return std::nullopt;
    } else if (at() == '^') {
      m_scanner.advance();
      const std::optional<std::int64_t> exponent = valueOf(m_scanner.takeWhile(isDigit));
      if (!exponent || isNamePart(at())) return std::nullopt;
      return power(value, *exponent);
    } else if (isNamePart(at())) {
      return std::nullopt;
    }
    return value;
  }

  char at() const { return m_scanner.here(); }

  TextScanner m_scanner;
};

bool goesOn(std::string_view typed) {
  return !typed.empty() && (typed[0] == '*' || typed[0] == '/' || typed[0] == '+');
}

}  // namespace

ExpressionValue evaluate(std::string_view text, const SymbolLookup& lookup) { return Evaluator(text, lookup).run(); }

std::string typedExpression(std::string_view typed, std::string_view before) {
  const std::string written = Shorthand(typed).writtenOut();
  if (before.empty() || !goesOn(written)) return written;
  const bool isSum = before.find_first_of("+-") != std::string_view::npos;
  const std::string whole = isSum ? fmt::format("({}){}", before, written) : fmt::format("{}{}", before, written);
  const ExpressionValue value = evaluate(whole, [](const std::string&) { return std::nullopt; });
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return whole;
}

std::vector<std::string> symbolNames(std::string_view text) {
  std::vector<std::string> names;
  forEachName(text, [&](std::size_t begin, std::size_t end) { names.emplace_back(text.substr(begin, end - begin)); });
  return names;
}

std::string replaceSymbol(std::string_view text, std::string_view name, std::string_view newName) {
  std::string result;
  std::size_t copied = 0;
  forEachName(text, [&](std::size_t begin, std::size_t end) {
    if (text.substr(begin, end - begin) != name) return;
    result += std::string(text.substr(copied, begin - copied)) + std::string(newName);
    copied = end;
  });
  return result + std::string(text.substr(copied));
}

Result<std::int64_t> evaluateExpression(std::string_view text, const std::map<std::string, std::int64_t>& symbols) {
  const ExpressionValue value = evaluate(text, [&](const std::string& name) {
    const auto found = symbols.find(name);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  });
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  const auto& problem = std::get<ExpressionProblem>(value);
  std::vector<std::string> names;
  for (const auto& [name, known] : symbols) names.push_back(name);
  const bool isUnknown = problem.kind == ExpressionProblem::Kind::UnknownSymbol;
  const std::string near = isUnknown ? nearest(problem.symbol, names) : std::string();
  return Error{fmt::format("In \"{}\", column {}: {}{}", text, problem.column, problem.message, didYouMean(near))};
}

}  // namespace fuseline
