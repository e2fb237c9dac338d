// How wide texts will be, without asking for the fonts of the machine: drawings are the same everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fuseline {

/// An upper estimate for sans-serif fonts. text: UTF-8.
double textWidthPx(std::string_view text, double fontPx);

/// A text with more characters is cut, with an ellipsis as the last character.
std::string shortened(std::string_view text, std::size_t mostCharacters);

}  // namespace fuseline
