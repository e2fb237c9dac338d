// Reads Python's expressions, to refuse text that Python would not compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fuseline {

/// Is the text one expression, on one line? Not read are the braces of f-strings, which are refused, names other than
/// ASCII, and yield and await, which have no place in a constructor.
/// Source: "The Python Language Reference" 3.13, sections 2 and 6.
bool isPythonExpression(std::string_view text);

}  // namespace fuseline
