// Launches of AdamW and of the norm of gradients. Plain C++: the kernels are in adamw_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/adamw.h"
#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>
#include <span>

namespace fuseline::cuda {

/// Counts an update, and computes what is the same for all elements of it.
struct AdamWBeginning {
  std::int64_t* numUpdates = nullptr;
  AdamWCorrections<float>* corrections = nullptr;
  const float* squares = nullptr;  // of all gradients, in two sums; null: they are not clipped
  AdamW options;
};
void launchAdamWBeginning(const AdamWBeginning& beginning, Stream stream);

/// One parameter.
struct AdamWTask {
  float* weights = nullptr;  // float32: the parameter, or its copy
  void* rounded = nullptr;   // the parameter of 16 bits; null: it is float32
  void* gradients = nullptr;
  float* expAvg = nullptr;
  float* expAvgSq = nullptr;
  std::int64_t elements = 0;
  device::Element element = device::Element::F32;          // of `rounded`
  device::Element gradientElement = device::Element::F32;  // of `gradients`
  bool clears = false;                                     // the gradients, after they are read
};
/// corrections: of launchAdamWBeginning(), on the device.
void launchAdamW(std::span<const AdamWTask> tasks, const AdamWTerms<float>& terms,
                 const AdamWCorrections<float>* corrections, int numMultiprocessors, Stream stream);

/// Gradients of one parameter, of which squares are added.
struct SquaresTask {
  const void* gradients = nullptr;
  std::int64_t elements = 0;
  device::Element element = device::Element::F32;
};
/// Sums that a task writes, each of a block.
inline constexpr int kSquaresPerTask = 64;
/// sums: kSquaresPerTask for each task.
void launchSquares(std::span<const SquaresTask> tasks, float* sums, Stream stream);
/// squares: two sums, of the first `middle` sums and of the others.
void launchSumOfSquares(const float* sums, std::int64_t middle, std::int64_t count, float* squares, Stream stream);

}  // namespace fuseline::cuda
