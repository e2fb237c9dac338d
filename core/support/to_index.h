// Indices kept as int, as the standard library wants them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace fuseline {

/// Precondition: index >= 0.
constexpr std::size_t toIndex(int index) { return static_cast<std::size_t>(index); }

}  // namespace fuseline
