// Parts of a workspace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace fuseline::cuda {

/// Size of a part including padding: the next part begins aligned for any access.
constexpr std::size_t workspacePart(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace fuseline::cuda
