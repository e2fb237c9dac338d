// Text of JSON values as the project's files write them: shortest numbers, inline where it fits, else one item a line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"
#include "core/support/utf8.h"

#include <string>
#include <string_view>

namespace fuseline {

/// Only UTF-8 text and finite numbers.
bool isStorable(const Json& value);

/// {"id": "x", "shape": ["M", "H"]}; reals keep a point or an exponent. The value must be storable.
std::string inlineText(const Json& value);

/// A key as a part of a JSON pointer: '~' and '/' are escaped (RFC 6901).
std::string escapedPointer(std::string_view key);
/// At most some 60 bytes of a text, for messages; cut between characters.
std::string shortened(const std::string& text);

/// `value` written at `indent`, after `used` characters of its line: inline if the line stays within 120 columns, else
/// one item a line.
void writePretty(std::string& out, const Json& value, std::size_t indent, std::size_t used);

}  // namespace fuseline
