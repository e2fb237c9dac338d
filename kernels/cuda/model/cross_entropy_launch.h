// Launches of CrossEntropy. Plain C++: the kernels are in cross_entropy_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>

namespace fuseline::cuda {

/// x, dx: [rows, classes], from the beginning of a packet on. A target outside the classes counts as ignored; the host
/// checks them before.
struct CrossEntropyTask {
  const void* x = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  const std::int64_t* target = nullptr;
  std::int64_t ignoreIndex = -100;
  float smoothing = 0.0F;
  float lseSquareScale = 0.0F;
  float scale = 1.0F;  // of every row that counts

  float* lse = nullptr;     // [rows]; null: not wanted
  float* losses = nullptr;  // [rows]
  float* loss = nullptr;    // their sum times scale; null: not wanted

  const float* dy = nullptr;  // of backward: one for all rows, or one a row
  bool isDyByRow = false;
  void* dx = nullptr;
};

/// lse and losses of the rows.
void launchRowLosses(const CrossEntropyTask& task, Stream stream);
/// loss, from losses.
void launchLossSum(const CrossEntropyTask& task, Stream stream);
/// dx from lse and dy, perhaps in place of x.
void launchCrossEntropyGradient(const CrossEntropyTask& task, Stream stream);
void launchZeros(float* sums, std::int64_t count, Stream stream);
/// Rounds sums in float32 to another element type.
void launchRounding(const float* sums, void* to, device::Element element, std::int64_t count, Stream stream);

}  // namespace fuseline::cuda
