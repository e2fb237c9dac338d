// A run within a page: HTML that shows it, and from which it is read again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <optional>
#include <string>
#include <string_view>

namespace fuseline {

/// Mark in the head of such a page, which identifies it from its beginning.
inline constexpr std::string_view kRunPageMark = R"(<meta name="generator" content="fuseline-run">)";

/// The record as an element that browsers neither show nor run. Nothing in it can end the element early.
std::string runElement(const RunRecord& record);

/// The JSON text of that element, within the page. Nothing: there is none, or it does not end. Time is linear.
std::optional<std::string_view> runTextOf(std::string_view page);

/// Whether it is a page at all, not the JSON of a run file.
bool isPage(std::string_view text);

}  // namespace fuseline
