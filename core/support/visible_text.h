// Texts of files and of other people, as terminals and log readers may be given them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fuseline {

/// Control characters (C0, DEL, C1), line separators and marks of the direction of writing as "\u001b", so that a text
/// can neither move a cursor, nor begin a new line, nor be shown in another order.
std::string visibleText(std::string_view text);

}  // namespace fuseline
