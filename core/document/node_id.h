// Rules for node ids.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <string_view>

namespace fuseline {

/// Can this text be the id of a node? Letters of any script, digits, _ and -: what separates names in endpoints, lists,
/// tensor names and tables is left out.
Verdict checkId(std::string_view id);

}  // namespace fuseline
