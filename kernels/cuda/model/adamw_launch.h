// Launches of AdamW. Plain C++: the kernels are in adamw_kernels.cu.
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
  double lr = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
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

}  // namespace fuseline::cuda
