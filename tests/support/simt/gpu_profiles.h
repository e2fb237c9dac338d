// The GPUs that people own, as far as kernels depend on them. Source: CUDA Programming Guide, "Technical Specifications
// per Compute Capability".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace fuseline::simt {

struct GpuProfile {
  ComputeCapability capability;
  std::size_t sharedKilobytes;  // maximum of a block

  constexpr std::size_t sharedBytes() const { return sharedKilobytes << 10U; }
};

inline constexpr std::array kGpuProfiles = {
    GpuProfile{{8, 0}, 163}, GpuProfile{{8, 6}, 99},   GpuProfile{{8, 7}, 163},  GpuProfile{{8, 9}, 99},
    GpuProfile{{9, 0}, 227}, GpuProfile{{10, 0}, 227}, GpuProfile{{10, 3}, 227}, GpuProfile{{11, 0}, 227},
    GpuProfile{{12, 0}, 99}, GpuProfile{{12, 1}, 99}};

/// Shared memory of a block; that of Hopper for a capability that is not listed.
inline std::size_t sharedBytesOf(ComputeCapability capability) {
  const auto found = std::ranges::find(kGpuProfiles, capability, &GpuProfile::capability);
  return found == kGpuProfiles.end() ? std::size_t{227} << 10U : found->sharedBytes();
}

}  // namespace fuseline::simt
