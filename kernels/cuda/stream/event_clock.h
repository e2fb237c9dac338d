// The clock of a stream: CUDA events.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <memory>

namespace fuseline::cuda {

/// One event per moment. Events resolve about half a microsecond (CUDA runtime API, "Event Management"). `besides`:
/// stream of transfers; may be nullptr if transfers are not marked. Throws DeviceFault.
std::unique_ptr<DeviceClock> makeEventClock(int device, Stream stream, std::size_t numMoments,
                                            Stream besides = nullptr);

}  // namespace fuseline::cuda
