// Pieces of YAML, and of the regular expressions in it, from names of any characters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fuseline {

/// 'fc1', or "a\u2028b" where a character must be escaped: a scalar that every YAML parser reads as this text. Bytes
/// that are not UTF-8 become the replacement character.
std::string yamlText(std::string_view text);

/// Text for a comment, which ends with its line: unprintable characters become '?'.
std::string yamlComment(std::string_view text);

/// "fc1\.linear": finds exactly this text, in Python as in ECMAScript.
std::string regexText(std::string_view text);

}  // namespace fuseline
