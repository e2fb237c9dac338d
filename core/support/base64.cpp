// Three bytes are four characters; = fills up the end.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/base64.h"

#include <array>
#include <cstdint>

namespace fuseline {

namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<std::uint32_t> digitOf(char c) {
  const std::size_t digit = kDigits.find(c);
  return digit == std::string_view::npos ? std::nullopt : std::optional(static_cast<std::uint32_t>(digit));
}

}  // namespace

std::string toBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 3; ++i)
      word = word << 8U | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text += at + i <= bytes.size() ? kDigits[word >> (18U - 6U * static_cast<std::uint32_t>(i)) & 63U] : '=';
  }
  return text;
}

std::optional<std::string> fromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t numFilled = 0;
  while (numFilled < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++numFilled;
  }
  std::string bytes;
  std::uint32_t word = 0, numBits = 0;
  for (const char c : text) {
    const auto digit = digitOf(c);
    if (!digit) return std::nullopt;
    word = word << 6U | *digit;
    numBits += 6;
    if (numBits < 8) continue;
    numBits -= 8;
    bytes += static_cast<char>(word >> numBits & 255U);
  }
  return bytes;
}

}  // namespace fuseline
