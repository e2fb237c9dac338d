// A GPU of host memory that implements the API of the CUDA runtime, so that the CUDA backend itself runs without a GPU.
// SPDX-License-Identifier: Apache-2.0
// Its kernels are those of the SIMT harness. Behavior that a device leaves undefined is made unfavorable, and calls
// that a device refuses are refused: streams run as late as allowed, or as early; memory begins as NaN; a capture that
// is not joined, waits for outside work, or makes the host wait is invalid.
#pragma once

#include "core/quant/recipe.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <functional>

namespace fuseline::host_gpu {

/// When a stream executes its launches. A device may do so at any time in between.
enum class Turn {
  Late,   // when another one waits for it
  Early,  // at once, unless it waits itself
};
/// Early from the beginning if the environment has FUSELINE_HOST_GPU_TURN=early. Returns the former setting.
Turn setTurn(Turn turn);
/// The stream that is late in either turn, as are graphs' own: the oldest one, denoted by nullptr.
void setMain(cuda::Stream stream);

/// Memory of the whole device. Returns the former size.
std::size_t setMemoryBytes(std::size_t bytes);

/// Code that begins with it is loaded as a compiled program, which cannot be launched; other code is refused.
constexpr char kLoadedProgram = 'P';

/// Its compute capability: 9.0, or that of FUSELINE_HOST_GPU=sm_80 and the like in the environment.
ComputeCapability capability();

/// Version of its cuBLASLt, as cublasLtGetVersion reports it; before 13.1 it offers activations with blocks of 128 that
/// return NaN, from 13.2 on it has grouped GEMMs. At first that of the header, or FUSELINE_HOST_CUBLASLT=130500 and the
/// like in the environment. Returns the former version.
std::size_t setCublasLtVersion(std::size_t version);
/// Grouped GEMMs that ran.
int numGroupedGemms();
/// It has no algorithm for fewer groups. Returns the former number, which is 1 at first.
int setFewestGroups(int count);

/// Current resources of any kind that has an owner.
struct Owned {
  std::size_t allocations = 0;
  std::size_t bytes = 0;  // of device memory
  std::size_t streams = 0;
  std::size_t events = 0;
  std::size_t graphs = 0;
  bool operator==(const Owned&) const = default;
};
Owned owned();

/// The next work faults, and so does every call after it. If the environment has FUSELINE_HOST_GPU_FAULT=N, that is the
/// work after the first N.
void faultInNextWork();

/// Submits work to a stream, as a launch does: to its capture, if there is one.
void submit(cuda::Stream stream, std::function<void()> work);
/// The same for work that may have to wait for other devices: called until it returns true.
void submitWaiting(cuda::Stream stream, std::function<bool()> advance);

/// Number of GPUs, each with streams of its own: 1, or FUSELINE_HOST_GPUS in the environment. Returns the former
/// number.
int setNumDevices(int count);
/// The device of a stream; -1: there is no such stream.
int deviceOf(cuda::Stream stream);
bool isCapturing(cuda::Stream stream);
/// All of it lies in one block of device memory.
bool isDeviceMemory(const void* begin, std::size_t bytes);
/// The number of the device that this thread has selected.
int currentDevice();

}  // namespace fuseline::host_gpu
