// Copies between pinned host memory and the device, on a separate stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <memory>
#include <span>

namespace fuseline::cuda {

/// Page-locked: the copy engines read and write it without the processor. Throws DeviceFault if there is too little.
std::unique_ptr<DeviceMemory> makePinnedMemory(int device, std::size_t sizeBytes);

struct TransferStreams {
  Stream stream = nullptr;   // of kernels
  Stream besides = nullptr;  // of copies
};

/// Both streams wait for each other by events only, which a CUDA graph captures as dependencies. Throws DeviceFault.
std::unique_ptr<Transfer> makeStreamTransfer(const TransferStreams& streams, std::span<std::byte> to,
                                             const std::byte* from, TransferDirection direction);

}  // namespace fuseline::cuda
