// Reads memory, and does nothing with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/stream.h"

#include <cstddef>

namespace fuseline::cuda {

/// memory: zeros, a multiple of 8 bytes; all of it is read, nothing is written.
void launchRead(std::byte* memory, std::size_t sizeBytes, Stream stream);

}  // namespace fuseline::cuda
