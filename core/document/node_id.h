// Rules for node ids.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <string_view>

namespace fuseline {

/// Can this text be the id of a node? Not empty, and free of the characters that separate names in endpoints and
/// tensor names.
Verdict checkId(std::string_view id);

}  // namespace fuseline
