// Compares a fused plan with an expected one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"
#include "core/support/result.h"

#include <string>

namespace fuseline::cli {

/// Both as `fuseline fuse --format json` writes them. Looks at the forward and backward lists only: reasons and savings
/// may be worded anew. Gives lines with "-" (expected) and "+" (actual) under the name of their list; empty when the
/// plans agree. Errors: `expected` is no plan.
Result<std::string> planDifference(const Json& expected, const Json& actual);

}  // namespace fuseline::cli
