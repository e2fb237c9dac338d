// Html: markup in which every text is escaped, by construction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// Markup comes from literals, from elements, and from texts, which are escaped. A name cannot become a tag.
class Html {
 public:
  Html() = default;

  static Html text(std::string_view plain);
  /// Existing markup, such as an element written elsewhere.
  static Html verbatim(std::string markup);

  Html& operator+=(const Html& more);
  friend Html operator+(Html first, const Html& second) { return first += second; }

  bool isEmpty() const { return m_markup.empty(); }
  const std::string& toString() const { return m_markup; }

 private:
  std::string m_markup;
};

/// Trusted names, and values, which are escaped.
using HtmlAttributes = std::vector<std::pair<std::string_view, std::string>>;

Html element(std::string_view tag, const HtmlAttributes& attributes, const Html& content = {});
Html element(std::string_view tag, const Html& content);
/// An element with one text in it.
Html textElement(std::string_view tag, std::string_view plain);

inline namespace literals {
/// Markup of ours.
Html operator""_html(const char* markup, std::size_t length);
}  // namespace literals

}  // namespace fuseline
