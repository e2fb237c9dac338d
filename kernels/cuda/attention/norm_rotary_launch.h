// Launches of RMSNorm of each head with a rotary embedding. Plain C++: the kernels are in norm_rotary_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/split_rotary_launch.h"
#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>

namespace fuseline::cuda {

/// x, y, their gradients and gamma have one element type.
struct NormRotaryTask {
  static constexpr int kMaxPairs = 128;
  static constexpr int kMaxChannels = 2 * kMaxPairs;

  const void* x = nullptr;
  const void* gamma = nullptr;  // [channels]
  void* y = nullptr;            // backward: dy, which is read
  RotaryCodes codes;            // forward: of y, which is null if only they are wanted
  float* rstd = nullptr;        // of each head; forward: null: not wanted
  void* dx = nullptr;           // null: not wanted
  float* gammaSums = nullptr;   // [blocks, channels]; null: not wanted
  device::Element element = device::Element::F32;
  float eps = 0.0F;
  bool isGammaZeroCentred = false;

  std::int64_t batch = 1;
  std::int64_t tokens = 0;        // of a batch entry
  std::int64_t batchRows = 0;     // rows of y from one batch entry to the next; a row has a token's heads
  std::int64_t tokenRows = 0;     // and from one token to the next
  std::int64_t rowStrideOfX = 0;  // between rows in memory; heads * channels if they are contiguous
  std::int64_t rowStrideOfDx = 0;
  std::int64_t heads = 1;
  std::int64_t channels = 1;
  std::int64_t numPairs = 0;  // that turn
  bool isInterleaved = false;
  float cosineFactor = 1.0F;
  float sineFactor = 1.0F;               // negative: turns back
  std::int64_t offset = 0;               // position of a sequence's first token
  const std::int64_t* sums = nullptr;    // of sequence lengths; null: each batch entry is a sequence
  std::int64_t numSequences = 0;         // where there are sums
  const std::int64_t* starts = nullptr;  // added to the positions of each sequence; null: nothing is
  std::uint64_t turns[kMaxPairs] = {};   // a token, in 2^-64 of a full turn
};

void launchNormRotaryForward(const NormRotaryTask& task, Stream stream);
/// blocks: rows of gammaSums.
void launchNormRotaryBackward(const NormRotaryTask& task, int blocks, Stream stream);
/// gradient: the sum of the rows of gammaSums. [channels]
void launchGammaGradient(const NormRotaryTask& task, int blocks, void* gradient, Stream stream);

}  // namespace fuseline::cuda
