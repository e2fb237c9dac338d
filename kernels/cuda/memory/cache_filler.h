// Fills the L2 cache of a GPU with unused data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <memory>

namespace fuseline::cuda {

/// L2 cache of the selected device, in bytes. Throws DeviceFault.
std::size_t l2CacheBytes();

/// For the selected device: reads twice as much memory as its L2 cache holds. Throws DeviceFault when there is no room.
std::unique_ptr<CacheFiller> makeCacheFiller(int device, Stream stream);

}  // namespace fuseline::cuda
