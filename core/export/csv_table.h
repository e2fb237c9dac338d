// A table for spreadsheets and scripts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>

namespace fuseline {

/// A head and one line a step of each variant that is launched, then one with what the whole took from end to end.
/// Times are medians and quartiles over the rounds, in nanoseconds. Source of the format: RFC 4180.
/// Errors: none that this format has.
Result<std::string> csvTable(const RunRecord& record);

}  // namespace fuseline
