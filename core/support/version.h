// The program's version, set by the build.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fuseline {

/// "0.1.0".
std::string_view version();

}  // namespace fuseline
