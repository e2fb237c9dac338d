// The version that CMake hands in.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/version.h"

namespace fuseline {

std::string_view version() { return FUSELINE_VERSION; }

}  // namespace fuseline
