// Words from the host, written by a launch: a captured graph keeps them, and no host memory has to outlive it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace fuseline::cuda {

/// to: on the device, at a multiple of 8 bytes.
void launchStoreWords(std::span<const std::uint64_t> words, std::byte* to, Stream stream);

}  // namespace fuseline::cuda
