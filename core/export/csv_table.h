// A table for spreadsheets and scripts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>

namespace fuseline {

/// A header and one line per launched step of each variant, then one with the end-to-end time. Times are medians and
/// quartiles over the rounds, in nanoseconds. Source of the format: RFC 4180.
/// Errors: none.
Result<std::string> csvTable(const RunRecord& record);

}  // namespace fuseline
