// Fills the L2 cache of a GPU with data of nobody.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <memory>

namespace fuseline::cuda {

/// Of the device that is selected. Throws DeviceFault.
std::size_t l2CacheBytes();

/// Of the device that is selected: writes twice as much memory as its L2 cache holds. Throws DeviceFault when there is
/// no room.
std::unique_ptr<CacheFiller> makeCacheFiller(int device, Stream stream);

}  // namespace fuseline::cuda
