// Source of the commands: GitHub's documentation of workflow commands; its runner still takes "##[", too.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/visible_stream.h"

#include "app/cli/terminal.h"
#include "core/support/visible_text.h"

#include <utility>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

bool isControl(char character) {
  const auto byte = static_cast<unsigned char>(character);
  return (byte < 0x20 && character != '\n' && character != '\t') || byte == 0x7F;
}

/// Whether the text begins with a C1 control character, two bytes in UTF-8.
bool isC1(std::string_view text) {
  if (text.size() < 2 || text[0] != '\xC2') return false;
  const auto next = static_cast<unsigned char>(text[1]);
  return next >= 0x80 && next < 0xA0;
}

}  // namespace

bool VisibleBuffer::put(std::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return m_target.sputn(text.data(), size) == size;
}

std::size_t VisibleBuffer::passing(std::string_view text, std::size_t at) const {
  if (text[at] == '\033') return m_hasColour ? styleLength(text.substr(at)) : 0;
  return isControl(text[at]) || isC1(text.substr(at)) || isCommand(text[at]) ? 0 : 1;
}

bool VisibleBuffer::isCommand(char next) const {
  return (next == ':' && m_colons == 1) || (next == '[' && m_hashes >= 2);
}

void VisibleBuffer::follow(char character) {
  m_colons = character == ':' && m_isIndent ? 1 : 0;
  m_hashes = character == '#' ? m_hashes + 1 : 0;
  const bool mayBeSpace = character == ' ' || character == '\t' || static_cast<unsigned char>(character) >= 0x80;
  m_isIndent = character == '\n' || (m_isIndent && mayBeSpace);
}

std::streambuf::int_type VisibleBuffer::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char one = traits_type::to_char_type(character);
  return xsputn(&one, 1) == 1 ? character : traits_type::eof();
}

std::streamsize VisibleBuffer::xsputn(const char* characters, std::streamsize size) {
  const std::string_view text(characters, static_cast<std::size_t>(size));
  std::size_t written = 0;  // all before it is
  for (std::size_t at = 0; at < text.size();) {
    if (std::exchange(m_hasReturn, false) && !put(text[at] == '\n' ? "\r" : "\\u000d")) return 0;
    const std::size_t passes = passing(text, at);
    if (passes > 0) {
      if (text[at] != '\033') follow(text[at]);
      at += passes;
      continue;
    }
    if (!put(text.substr(written, at - written))) return 0;
    const std::size_t length = isC1(text.substr(at)) ? 2 : 1;
    m_hasReturn = text[at] == '\r';
    const bool isSeen = m_hasReturn || put(isCommand(text[at]) ? fmt::format("\\u{:04x}", text[at])
                                                               : visibleText(text.substr(at, length)));
    if (!isSeen) return 0;
    if (!m_hasReturn) follow('u');
    written = at += length;
  }
  return put(text.substr(written)) ? size : 0;
}

}  // namespace fuseline::cli
