// TextScanner: reads a formula or an expression token by token.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace fuseline {

constexpr bool isDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool isNamePart(char c) { return isNameStart(c) || isDigit(c); }
constexpr bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class TextScanner {
 public:
  explicit TextScanner(std::string_view text) : m_text(text) {}

  /// Skips spaces. The next character; '\0' at the end, or after stop().
  char peek() {
    if (!m_isStopped) takeWhile(isSpace);
    return m_isStopped ? '\0' : here();
  }
  /// The character at this place; '\0' at the end.
  char here() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }
  bool isAtEnd() {
    peek();
    return m_at == m_text.size();
  }
  /// Takes c if it is the next character.
  bool take(char c) {
    if (peek() != c) return false;
    ++m_at;
    return true;
  }
  /// The characters from this place on that belong together. May be empty.
  std::string_view takeWhile(bool (*belongs)(char)) {
    const std::size_t begin = m_at;
    while (m_at < m_text.size() && belongs(m_text[m_at])) ++m_at;
    return m_text.substr(begin, m_at - begin);
  }
  std::string_view advance(std::size_t count = 1) {
    const std::string_view taken = rest().substr(0, count);
    m_at += taken.size();
    return taken;
  }

  std::string_view rest() const { return m_text.substr(m_at); }
  /// In bytes.
  std::size_t position() const { return m_at; }
  /// After a problem: there are no further tokens, so that parsers end.
  void stop() { m_isStopped = true; }

 private:
  std::string_view m_text;
  std::size_t m_at = 0;
  bool m_isStopped = false;
};

}  // namespace fuseline
