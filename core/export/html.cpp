// Escapes texts and writes elements.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/html.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

/// In texts and in attributes with double or single quotes. Control characters are no characters of HTML.
void appendEscaped(std::string& markup, char c) {
  constexpr char kFirstPrintable = ' ';
  switch (c) {
    case '&': markup += "&amp;"; return;
    case '<': markup += "&lt;"; return;
    case '>': markup += "&gt;"; return;
    case '"': markup += "&quot;"; return;
    case '\'': markup += "&#39;"; return;
    default: break;
  }
  const bool isControl = (c >= 0 && c < kFirstPrintable && c != '\n' && c != '\t') || c == '\x7F';
  if (isControl)
    markup += "\xEF\xBF\xBD";  // U+FFFD
  else
    markup += c;
}

}  // namespace

Html Html::text(std::string_view plain) {
  Html html;
  for (const char c : plain) appendEscaped(html.m_markup, c);
  return html;
}

Html Html::verbatim(std::string markup) {
  Html html;
  html.m_markup = std::move(markup);
  return html;
}

Html& Html::operator+=(const Html& more) {
  m_markup += more.m_markup;
  return *this;
}

Html element(std::string_view tag, const HtmlAttributes& attributes, const Html& content) {
  std::string markup = fmt::format("<{}", tag);
  for (const auto& [name, value] : attributes) markup += fmt::format(" {}=\"{}\"", name, Html::text(value).toString());
  return Html::verbatim(fmt::format("{}>{}</{}>", markup, content.toString(), tag));
}

Html element(std::string_view tag, const Html& content) { return element(tag, {}, content); }

Html textElement(std::string_view tag, std::string_view plain) { return element(tag, Html::text(plain)); }

inline namespace literals {
Html operator""_html(const char* markup, std::size_t length) { return Html::verbatim(std::string(markup, length)); }
}  // namespace literals

}  // namespace fuseline
