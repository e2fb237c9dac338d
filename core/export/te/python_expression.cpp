// Splits a text into Python's tokens, and follows the grammar of expressions.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/python_expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <initializer_list>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

enum class TokenKind { Name, Keyword, Number, String, Sign };

struct Token {
  TokenKind kind;
  std::string text;  // of a string its prefix, in lower case
};

constexpr std::array kNoNames = {"and",    "as",   "assert", "async",  "await",  "break",   "class",    "continue",
                                 "def",    "del",  "elif",   "else",   "except", "finally", "for",      "from",
                                 "global", "if",   "import", "in",     "is",     "lambda",  "nonlocal", "not",
                                 "or",     "pass", "raise",  "return", "try",    "while",   "with",     "yield"};
// Longer ones first.
constexpr std::array kSigns = {"...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", ":=", "+",
                               "-",   "*",  "/",  "%",  "@",  "&",  "|",  "^",  "~",  "<",  ">",
                               "(",   ")",  "[",  "]",  "{",  "}",  ",",  ":",  ".",  "="};

bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool isNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Tokens {
 public:
  explicit Tokens(std::string_view text) : m_text(text) {}

  /// Empty: the text has others than Python's tokens, or none.
  std::vector<Token> read() {
    while (skipBlanks())
      if (m_tokens.size() >= kMostTokens || !readOne()) return {};
    return std::move(m_tokens);
  }

 private:
  static constexpr std::size_t kMostTokens = 1000;  // Python's own parser ends with an error after some thousands
  static constexpr std::size_t kMostDigits = 4000;  // sys.int_info.default_max_str_digits is 4300

  bool skipBlanks() {
    while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t')) ++m_at;
    return m_at < m_text.size();
  }

  bool readOne() {
    const char c = m_text[m_at];
    const bool isPointed = c == '.' && m_at + 1 < m_text.size() && isDigit(m_text[m_at + 1]);
    if (isDigit(c) || isPointed) return readNumber();
    if (c == '"' || c == '\'') return readString("");
    return isNameStart(c) ? readName() : readSign();
  }

  bool take(TokenKind kind, std::size_t size) {
    m_tokens.push_back({kind, std::string(m_text.substr(m_at, size))});
    m_at += size;
    return true;
  }

  bool readNumber() {
    static const std::regex number(
        "(0[xX](_?[0-9a-fA-F])+|0[bB](_?[01])+|0[oO](_?[0-7])+|"
        "([0-9](_?[0-9])*)?\\.[0-9](_?[0-9])*([eE][+-]?[0-9](_?[0-9])*)?[jJ]?|"
        "[0-9](_?[0-9])*\\.?[eE][+-]?[0-9](_?[0-9])*[jJ]?|[0-9](_?[0-9])*\\.?[jJ]|[0-9](_?[0-9])*\\.|"
        "[1-9](_?[0-9])*|0(_?0)*)");
    std::size_t end = m_at;
    while (end < m_text.size() &&
           (isNameStart(m_text[end]) || isDigit(m_text[end]) || m_text[end] == '.' || isSignOfExponent(end)))
      ++end;
    const std::string text(m_text.substr(m_at, end - m_at));
    return text.size() <= kMostDigits && std::regex_match(text, number) && take(TokenKind::Number, text.size());
  }

  bool isSignOfExponent(std::size_t at) const {
    const bool isHex = m_text.substr(m_at).starts_with("0x") || m_text.substr(m_at).starts_with("0X");
    return (m_text[at] == '+' || m_text[at] == '-') && (m_text[at - 1] == 'e' || m_text[at - 1] == 'E') && !isHex;
  }

  bool readName() {
    std::size_t end = m_at;
    while (end < m_text.size() && (isNameStart(m_text[end]) || isDigit(m_text[end]))) ++end;
    const std::string name(m_text.substr(m_at, end - m_at));
    if (end < m_text.size() && (m_text[end] == '"' || m_text[end] == '\'')) {
      m_at = end;
      return readString(name);
    }
    const bool isKeyword = std::ranges::find(kNoNames, name) != kNoNames.end();
    return take(isKeyword ? TokenKind::Keyword : TokenKind::Name, name.size());
  }

  bool readSign() {
    const std::string_view rest = m_text.substr(m_at);
    const auto sign = std::ranges::find_if(kSigns, [&](const char* each) { return rest.starts_with(each); });
    return sign != kSigns.end() && take(TokenKind::Sign, std::string_view(*sign).size());
  }

  bool readString(std::string prefix) {
    std::ranges::transform(prefix, prefix.begin(), [](unsigned char c) { return std::tolower(c); });
    static const std::set<std::string> known = {"", "r", "b", "u", "f", "rb", "br", "rf", "fr"};
    if (!known.contains(prefix)) return false;
    const auto has = [&](char c) { return prefix.find(c) != std::string::npos; };
    const std::string triple(3, m_text[m_at]);
    const std::string quote = m_text.substr(m_at).starts_with(triple) ? triple : triple.substr(0, 1);
    std::size_t at = m_at + quote.size();
    while (!m_text.substr(at).starts_with(quote)) {
      if (at >= m_text.size() || static_cast<unsigned char>(m_text[at]) < 0x20) return false;
      if (has('f') && (m_text[at] == '{' || m_text[at] == '}')) return false;
      if (has('b') && static_cast<unsigned char>(m_text[at]) >= 0x80) return false;
      if (m_text[at] == '\\' && (at + 1 >= m_text.size() || !(has('r') || isEscape(at + 1, has('b'))))) return false;
      at += m_text[at] == '\\' ? 2 : 1;
    }
    m_tokens.push_back({TokenKind::String, prefix});
    m_at = at + quote.size();
    return true;
  }

  /// The hexadecimal digits of x, u and U are there. Names of characters are refused.
  bool isEscape(std::size_t at, bool isBytes) const {
    const char c = m_text[at];
    if (c == 'N' && !isBytes) return false;
    const std::size_t digits = c == 'x' ? 2 : isBytes ? 0 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const std::string_view number = m_text.substr(at + 1, digits);
    return number.size() == digits &&
           std::ranges::all_of(number, [](unsigned char d) { return std::isxdigit(d) != 0; });
  }

  std::string_view m_text;
  std::size_t m_at = 0;
  std::vector<Token> m_tokens;
};

/// Every function reads one construct, and returns whether it is there.
class Grammar {
 public:
  explicit Grammar(std::vector<Token> tokens) : m_tokens(std::move(tokens)) {}

  bool isExpression() { return !m_tokens.empty() && expression() && m_at == m_tokens.size(); }

 private:
  const Token* next(std::size_t ahead = 0) const {
    return m_at + ahead < m_tokens.size() ? &m_tokens[m_at + ahead] : nullptr;
  }
  bool isNext(std::string_view text, std::size_t ahead = 0) const {
    const Token* const token = next(ahead);
    return token && (token->kind == TokenKind::Sign || token->kind == TokenKind::Keyword) && token->text == text;
  }
  bool accept(std::string_view text) {
    if (!isNext(text)) return false;
    ++m_at;
    return true;
  }
  bool accept(TokenKind kind) {
    if (!next() || next()->kind != kind) return false;
    ++m_at;
    return true;
  }
  bool acceptOneOf(std::initializer_list<std::string_view> texts) {
    return std::ranges::any_of(texts, [&](std::string_view text) { return accept(text); });
  }

  /// Brackets and lambdas may be nested as deep as in Python.
  bool expression() {
    constexpr int kMostNested = 90;
    if (m_depth >= kMostNested) return false;
    ++m_depth;
    const bool isThere = accept("lambda") ? lambdaRest() : conditional();
    --m_depth;
    return isThere;
  }

  bool lambdaRest() {
    std::set<std::string> names;
    bool hasDefault = false, isNamed = false, isLast = false;
    while (!accept(":")) {
      if (isLast) return false;
      isLast = accept("**");
      const bool isStar = !isLast && accept("*");
      if (isStar && isNamed) return false;
      isNamed = isNamed || isStar;
      const Token* const name = next();
      if (!accept(TokenKind::Name) || !names.insert(name->text).second) return false;
      if (accept("=")) {
        if (isStar || isLast || !expression()) return false;
        hasDefault = true;
      } else if (hasDefault && !isNamed && !isLast) {
        return false;
      }
      if (!isNext(":") && !accept(",")) return false;
    }
    return expression();
  }

  bool conditional() {
    if (!disjunction()) return false;
    return !accept("if") || (disjunction() && accept("else") && expression());
  }

  bool disjunction() {
    do {
      while (accept("not")) {
      }
      if (!comparison()) return false;
    } while (acceptOneOf({"or", "and"}));
    return true;
  }

  bool comparison() {
    do {
      if (!arithmetic()) return false;
    } while (acceptComparison());
    return true;
  }

  bool acceptComparison() {
    if (accept("is")) return accept("not"), true;
    if (isNext("not") && isNext("in", 1)) return m_at += 2, true;
    return acceptOneOf({"<", ">", "==", "<=", ">=", "!=", "in"});
  }

  bool arithmetic() {
    do {
      if (!factor()) return false;
    } while (acceptOneOf({"+", "-", "*", "/", "//", "%", "@", "<<", ">>", "&", "^", "|"}));
    return true;
  }

  bool factor() {
    do {
      while (acceptOneOf({"+", "-", "~"})) {
      }
      if (!primary()) return false;
    } while (accept("**"));
    return true;
  }

  bool primary() {
    if (!atom()) return false;
    while (true) {
      if (accept(".")) {
        if (!next() || isConstant(next()->text) || !accept(TokenKind::Name)) return false;
      } else if (accept("(")) {
        if (!arguments()) return false;
      } else if (accept("[")) {
        if (isNext("]") || !listUntil("]", [&] { return slice(); })) return false;
      } else {
        return true;
      }
    }
  }

  bool atom() {
    if (accept(TokenKind::Name) || accept(TokenKind::Number) || accept("...")) return true;
    if (next() && next()->kind == TokenKind::String) return strings();
    if (accept("(")) return group();
    if (accept("[")) return listUntil("]", [&] { return element(); });
    return accept("{") &&
           (isDictionary() ? listUntil("}", [&] { return pair(); }) : listUntil("}", [&] { return element(); }));
  }

  /// Adjacent ones are one, of text or of bytes.
  bool strings() {
    const bool isBytes = isOfBytes(*next());
    for (; next() && next()->kind == TokenKind::String; ++m_at)
      if (isOfBytes(*next()) != isBytes) return false;
    return true;
  }

  static bool isOfBytes(const Token& string) { return string.text.find('b') != std::string::npos; }

  /// One star needs a comma.
  bool group() {
    const bool isStar = isNext("*");
    const std::size_t first = m_at;
    if (!listUntil(")", [&] { return element(); })) return false;
    const auto isComma = [](const Token& token) { return token.kind == TokenKind::Sign && token.text == ","; };
    return !isStar || std::any_of(m_tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                  m_tokens.begin() + static_cast<std::ptrdiff_t>(m_at), isComma);
  }

  /// Elements with commas between them, or one with `for`.
  template <class Read>
  bool listUntil(std::string_view closing, const Read& read) {
    for (int count = 0; !accept(closing); ++count) {
      if (!read()) return false;
      if (isNext("for") && (count > 0 || !comprehension() || !isNext(closing))) return false;
      if (!isNext(closing) && !accept(",")) return false;
    }
    return true;
  }

  bool element() { return accept("*") ? arithmetic() : named(); }

  bool named() {
    if (next() && next()->kind == TokenKind::Name && isNext(":=", 1)) m_at += 2;
    return expression();
  }

  /// Looks no further than the first element.
  bool isDictionary() {
    if (isNext("}") || isNext("**")) return true;
    const std::size_t first = m_at;
    const bool isPair = element() && isNext(":");
    m_at = first;
    return isPair;
  }

  bool pair() { return accept("**") ? arithmetic() : expression() && accept(":") && expression(); }

  bool slice() {
    if (!isNext(":") && !element()) return false;
    for (int colons = 0; colons < 2 && accept(":"); ++colons)
      if (!isNext(":") && !isNext("]") && !isNext(",") && !expression()) return false;
    return true;
  }

  bool comprehension() {
    while (accept("for")) {
      if (!targets() || !accept("in") || !disjunction()) return false;
      while (accept("if"))
        if (!disjunction()) return false;
    }
    return true;
  }

  bool targets() {
    do {
      if (accept("(") ? !targets() || !accept(")") : !accept(TokenKind::Name)) return false;
    } while (accept(","));
    return true;
  }

  /// Those with a name come last, each name once.
  bool arguments() {
    std::set<std::string> names;
    bool isNamed = false, isUnpacked = false;
    return listUntil(")", [&] {
      if (accept("**")) return isUnpacked = isNamed = true, expression();
      if (accept("*")) return !isUnpacked && expression();
      const Token* const name = next();
      if (!name || name->kind != TokenKind::Name || !isNext("=", 1)) return !isNamed && named();
      m_at += 2;
      isNamed = true;
      return names.insert(name->text).second && !isConstant(name->text) && expression();
    });
  }

  static bool isConstant(std::string_view name) {
    return name == "None" || name == "True" || name == "False" || name == "__debug__";
  }

  std::vector<Token> m_tokens;
  std::size_t m_at = 0;
  int m_depth = 0;
};

}  // namespace

bool isPythonExpression(std::string_view text) { return Grammar(Tokens(text).read()).isExpression(); }

}  // namespace fuseline
