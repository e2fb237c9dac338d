// Angles of rotary position embeddings. They are counted in 2^-64 of a full turn, so that whole turns drop out of a
// product of integers and no position is too far for float32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/device/sequences.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// Position of a token of a batch entry; -1: in no sequence. Task: offset, sums, numSequences and starts as in
/// RotaryTask.
template <class Task>
__device__ std::int64_t positionOf(const Task& task, std::int64_t entry, std::int64_t token) {
  const std::int64_t sequence = task.sums ? sequenceOf(task.sums, task.numSequences, token) : entry;
  if (sequence < 0) return -1;
  const std::int64_t first = task.sums ? task.sums[sequence] : 0;
  return task.offset + (task.starts ? task.starts[sequence] : 0) + token - first;
}

struct Rotation {
  float cosine = 1.0f;
  float sine = 0.0f;
};

/// turns: signed, so that they are half a turn at most.
inline __device__ Rotation rotationOf(std::uint64_t turns) {
  const float halfTurns = static_cast<float>(static_cast<std::int64_t>(turns)) * 0x1p-63f;
  Rotation rotation;
#ifdef __CUDA_ARCH__
  sincospif(halfTurns, &rotation.sine, &rotation.cosine);
#else
  rotation.cosine = std::cos(3.14159265358979323846f * halfTurns);
  rotation.sine = std::sin(3.14159265358979323846f * halfTurns);
#endif
  return rotation;
}

}  // namespace fuseline::cuda::device
