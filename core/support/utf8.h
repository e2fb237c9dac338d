// The characters of a UTF-8 text (RFC 3629).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace fuseline {

struct Character {
  char32_t code = 0;
  std::string_view bytes;
};

/// The first one of a text that is not empty. Nothing: its first byte begins none. Longer forms than needed and halves
/// of surrogate pairs are none.
std::optional<Character> firstCharacter(std::string_view text);

/// Is all of it UTF-8?
bool isUtf8(std::string_view text);

}  // namespace fuseline
