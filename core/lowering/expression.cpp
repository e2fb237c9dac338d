// A recursive-descent evaluator: sum = product {+- product}, product = factor {*/ factor}.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/expression.h"

#include "core/support/text.h"

#include <cctype>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr int kMaxNesting = 64;

bool isNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
bool isNamePart(char c) { return isNameStart(c) || isDigit(c); }

class Evaluator {
 public:
  Evaluator(std::string_view text, const SymbolLookup& lookup) : m_text(text), m_lookup(lookup) {}

  ExpressionValue run() {
    const std::int64_t value = sum();
    if (!m_problem && peek() != '\0') fail(Kind::Syntax, fmt::format("expected an operator, found \"{}\"", rest()));
    if (m_problem) return *m_problem;
    return value;
  }

 private:
  using Kind = ExpressionProblem::Kind;

  std::int64_t sum() {
    std::int64_t value = product();
    for (char sign = peek(); !m_problem && (sign == '+' || sign == '-'); sign = peek()) {
      const std::size_t place = m_at++;
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
    for (char sign = peek(); !m_problem && (sign == '*' || sign == '/'); sign = peek()) {
      const std::size_t place = m_at++;
      const std::int64_t right = factor();
      if (m_problem) return 0;
      value = sign == '*' ? times(value, right, place) : divide(value, right, place);
    }
    return value;
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
    const char c = peek();
    if (m_problem) return 0;
    if (c == '(' || c == '-') return nested(c);
    if (isDigit(c)) return number();
    if (isNameStart(c)) return symbol();
    return fail(Kind::Syntax, c == '\0' ? std::string("expected a number, a symbol or \"(\", found the end")
                                        : fmt::format("expected a number, a symbol or \"(\", found \"{}\"", rest()));
  }

  std::int64_t nested(char c) {
    const std::size_t place = m_at;
    if (++m_nesting > kMaxNesting) return fail(Kind::Syntax, "the expression is nested too deeply");
    ++m_at;
    const std::int64_t value = c == '-' ? times(-1, factor(), place) : sum();
    if (!m_problem && c == '(' && peek() != ')')
      return fail(Kind::Syntax, m_at == m_text.size() ? std::string("expected \")\", found the end")
                                                      : fmt::format("expected \")\", found \"{}\"", rest()));
    if (c == '(') ++m_at;
    --m_nesting;
    return value;
  }

  std::int64_t number() {
    const std::size_t begin = m_at;
    std::int64_t value = 0;
    bool isTooBig = false;
    for (; m_at < m_text.size() && isDigit(m_text[m_at]); ++m_at)
      isTooBig = isTooBig || __builtin_mul_overflow(value, 10, &value) ||
                 __builtin_add_overflow(value, m_text[m_at] - '0', &value);
    if (!isTooBig) return value;
    return failAt(begin, Kind::Overflow,
                  fmt::format("{} does not fit into 64 bits", m_text.substr(begin, m_at - begin)));
  }

  std::int64_t symbol() {
    const std::size_t begin = m_at;
    while (m_at < m_text.size() && isNamePart(m_text[m_at])) ++m_at;
    const std::string name(m_text.substr(begin, m_at - begin));
    if (const auto value = m_lookup(name)) return *value;
    failAt(begin, Kind::UnknownSymbol, fmt::format("there is no symbol {}", name));
    m_problem->symbol = name;
    return 0;
  }

  char peek() {
    while (m_at < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_at]))) ++m_at;
    return m_at < m_text.size() ? m_text[m_at] : '\0';
  }

  std::string_view rest() const { return m_text.substr(m_at); }

  void failOverflow(std::size_t place, std::int64_t a, char sign, std::int64_t b) {
    failAt(place, Kind::Overflow, fmt::format("{} {} {} does not fit into 64 bits", a, sign, b));
  }

  std::int64_t fail(Kind kind, std::string message) { return failAt(m_at, kind, std::move(message)); }

  std::int64_t failAt(std::size_t place, Kind kind, std::string message) {
    if (!m_problem) m_problem = {kind, static_cast<int>(place) + 1, {}, std::move(message)};
    return 0;
  }

  std::string_view m_text;
  const SymbolLookup& m_lookup;
  std::size_t m_at = 0;
  int m_nesting = 0;
  std::optional<ExpressionProblem> m_problem;
};

// Calls use(begin, end) for every name in the text.
template <class Use>
void forEachName(std::string_view text, const Use& use) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && isNamePart(text[end])) ++end;
    if (end > i && isNameStart(text[i])) use(i, end);
    i = end > i ? end : i + 1;
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
  explicit Shorthand(std::string_view text) : m_text(text) {}

  std::string writtenOut() {
    std::string result;
    while (m_at < m_text.size()) result += isDigit(m_text[m_at]) ? number() : other();
    return result;
  }

 private:
  /// A name with its digits, or one character.
  std::string other() {
    const std::size_t begin = m_at++;
    if (isNameStart(m_text[begin])) skip(isNamePart);
    return std::string(m_text.substr(begin, m_at - begin));
  }

  std::string number() {
    const std::size_t begin = m_at;
    const std::optional<std::int64_t> value = digits();
    const std::optional<std::int64_t> whole = value ? suffix(*value) : std::nullopt;
    if (whole) return std::to_string(*whole);
    skip(isNamePart);  // "4kg" is no number, and no business of ours
    return std::string(m_text.substr(begin, m_at - begin));
  }

  /// A suffix of a number counts only if no other character follows it directly.
  std::optional<std::int64_t> suffix(std::int64_t value) {
    if (at() == 'k' || at() == 'K') {
      ++m_at;
      if (isNamePart(at()) || __builtin_mul_overflow(value, kKilo, &value)) return std::nullopt;
    } else if (at() == '^') {
      ++m_at;
      const std::optional<std::int64_t> exponent = isDigit(at()) ? digits() : std::nullopt;
      if (!exponent || isNamePart(at())) return std::nullopt;
      return power(value, *exponent);
    } else if (isNamePart(at())) {
      return std::nullopt;
    }
    return value;
  }

  std::optional<std::int64_t> digits() {
    const std::size_t begin = m_at;
    skip(isDigit);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(m_text.data() + begin, m_text.data() + m_at, value);
    return error == std::errc() ? std::optional(value) : std::nullopt;
  }

  char at() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }

  void skip(bool (*isPart)(char)) {
    while (m_at < m_text.size() && isPart(m_text[m_at])) ++m_at;
  }

  std::string_view m_text;
  std::size_t m_at = 0;
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
