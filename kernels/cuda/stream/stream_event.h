// Events that order streams.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/stream.h"
#include "kernels/cuda/support/check.h"

#include <memory>

#include <cuda_runtime_api.h>

namespace fuseline::cuda {

using OwnedEvent = std::unique_ptr<CUevent_st, cudaError_t (*)(cudaEvent_t)>;

/// Takes no time. Throws DeviceFault.
inline OwnedEvent makeEvent() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event");
  return {event, cudaEventDestroy};
}

inline void recordEvent(const OwnedEvent& event, Stream stream) {
  check(cudaEventRecord(event.get(), stream), "record an event");
}

/// Later launches on the stream wait for the recorded work.
inline void waitForEvent(Stream stream, const OwnedEvent& event) {
  check(cudaStreamWaitEvent(stream, event.get(), 0), "wait for an event");
}

}  // namespace fuseline::cuda
