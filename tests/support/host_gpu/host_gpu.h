// A GPU of host memory behind the API of the CUDA runtime, so that the CUDA backend itself runs where there is none.
// SPDX-License-Identifier: Apache-2.0
// Its kernels are those of the SIMT harness. What a device leaves undefined is done in the way that few would expect,
// and what it refuses is refused: streams run as late as they may, or as early; memory begins as NaN; a capture that
// is not joined, waits for what is outside, or makes the host wait is none.
#pragma once

#include "core/quant/recipe.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <functional>

namespace fuseline::host_gpu {

/// When a stream does what was launched on it. A device is free to do so at any time in between.
enum class Turn {
  Late,   // when somebody waits for it
  Early,  // at once, unless it waits itself
};
/// Early from the beginning where the environment has FUSELINE_HOST_GPU_TURN=early. Returns what was set before.
Turn setTurn(Turn turn);
/// The stream that is late in either turn, as are graphs' own: the oldest one, which nullptr stands for.
void setMain(cuda::Stream stream);

/// Of the whole device. Returns what it was before.
std::size_t setMemoryBytes(std::size_t bytes);

/// Its compute capability: 9.0, or that of FUSELINE_HOST_GPU=sm_80 and the like in the environment.
ComputeCapability capability();

/// Of its cuBLASLt, as cublasLtGetVersion says it; before 13.1 it offers activations with blocks of 128 that come out
/// as NaN. Returns what it was before.
std::size_t setCublasLtVersion(std::size_t version);

/// What is there now, of any kind that has an owner.
struct Owned {
  std::size_t allocations = 0;
  std::size_t bytes = 0;  // of device memory
  std::size_t streams = 0;
  std::size_t events = 0;
  std::size_t graphs = 0;
  bool operator==(const Owned&) const = default;
};
Owned owned();

/// The next work faults, and so does every call after it. Where the environment has FUSELINE_HOST_GPU_FAULT=N that is
/// the work behind the first N.
void faultInNextWork();

/// Gives work to a stream, as a launch does: to its capture, if there is one.
void submit(cuda::Stream stream, std::function<void()> work);

}  // namespace fuseline::host_gpu
