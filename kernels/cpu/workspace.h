// Parts of a workspace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace fuseline::cpu {

/// Size of a part including padding: the next part begins at a cache line.
constexpr std::size_t workspacePart(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace fuseline::cpu
