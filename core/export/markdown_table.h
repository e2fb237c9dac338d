// A run as a table for pull requests and issues.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>
#include <string_view>

namespace fuseline {

/// The comparison of `fuseline run`: each fused op above the basic ops that it replaced, then memory, and folded away
/// how it was measured and in which environment. Errors: none that this format has.
/// Source of the format: GitHub Flavored Markdown 0.29.
Result<std::string> markdownTable(const RunRecord& record);

/// A text of a run as a code span, which is also valid in table cells: nothing in it is markup, a mention or a
/// reference to an issue. Line breaks become spaces. Nothing for an empty text.
std::string markdownCode(std::string_view text);

}  // namespace fuseline
