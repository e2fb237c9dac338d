// Counts characters, narrow and wide.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/text_width.h"

namespace fuseline {

namespace {

bool continuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

/// In units of the font's size; those of DejaVu Sans, which is wider than the sans-serif fonts of most systems.
double widthOf(char first) {
  constexpr std::string_view kNarrow = "iljtfrI.,:;|!'()[] ";
  constexpr std::string_view kWide = "mwMW@%";
  // The first byte of U+1000 and above: scripts that are about as wide as they are high.
  constexpr unsigned char kFirstOfThree = 0xE1;
  if (static_cast<unsigned char>(first) >= kFirstOfThree) return 1.0;
  if (kNarrow.find(first) != kNarrow.npos) return 0.41;
  return kWide.find(first) != kWide.npos ? 0.98 : 0.64;
}

}  // namespace

double textWidthPx(std::string_view text, double fontPx) {
  double width = 0.0;
  for (const char c : text)
    if (!continuesCharacter(c)) width += widthOf(c);
  return width * fontPx;
}

std::string shortened(std::string_view text, std::size_t mostCharacters) {
  std::size_t numCharacters = 0;
  std::size_t end = 0;  // of the characters that remain before the ellipsis
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (continuesCharacter(text[at])) continue;
    if (++numCharacters == mostCharacters) end = at;
  }
  return numCharacters <= mostCharacters ? std::string(text) : std::string(text.substr(0, end)) + "…";
}

}  // namespace fuseline
