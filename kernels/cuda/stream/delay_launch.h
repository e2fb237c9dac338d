// Keeps a GPU busy with nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/stream.h"

#include <cstdint>

namespace fuseline::cuda {

/// Work launched after it waits for this number of cycles of a multiprocessor.
void launchDelay(std::int64_t cycles, Stream stream);

}  // namespace fuseline::cuda
