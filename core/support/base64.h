// Bytes as text of 64 characters (RFC 4648).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fuseline {

std::string toBase64(std::string_view bytes);
/// Nothing: a character or a length that no such text has.
std::optional<std::string> fromBase64(std::string_view text);

}  // namespace fuseline
