// Tells states of a pipeline apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <string>

namespace fuseline {

/// "fnv1a64:0123456789abcdef", of a pipeline file's content; where the nodes stand, and frames, do not count.
std::string hashWithoutView(Json pipeline);

}  // namespace fuseline
