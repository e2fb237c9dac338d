// Launches of rotary position embedding. Plain C++: the kernel stands in rotary_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>

namespace fuseline::cuda {

/// Some pairs of the channels of every head, and the channels that do not turn.
struct RotaryTask {
  static constexpr int kMaxPairs = 256;  // the arguments of a kernel take 4 KB

  const void* from = nullptr;
  void* to = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t batch = 1;
  std::int64_t tokens = 0;  // of a batch entry
  // Strides of either tensor, in elements.
  std::int64_t fromBatchStride = 0;
  std::int64_t fromTokenStride = 0;
  std::int64_t fromHeadStride = 0;
  std::int64_t toBatchStride = 0;
  std::int64_t toTokenStride = 0;
  std::int64_t toHeadStride = 0;
  std::int64_t heads = 1;
  std::int64_t channels = 1;  // of a head
  std::int64_t numPairs = 0;  // that turn
  std::int64_t firstPair = 0;
  int pairs = 0;           // of this launch
  bool passesRest = true;  // it copies the channels that do not turn
  bool isInterleaved = false;
  bool isVectorized = false;  // pairs, channels and rest are whole packets
  float cosineFactor = 1.0F;
  float sineFactor = 1.0F;  // negative: turns back

  std::int64_t offset = 0;               // position of a sequence's first token
  const std::int64_t* sums = nullptr;    // of sequence lengths; null: each batch entry is a sequence
  std::int64_t numSequences = 0;         // where there are sums
  const std::int64_t* starts = nullptr;  // added to the positions of each sequence; null: nothing is
  std::uint64_t turns[kMaxPairs] = {};   // a token, in 2^-64 of a full turn
};

/// to: as `from`, but for tokens in no sequence, which pass. May be `from` itself.
void launchRotary(const RotaryTask& task, Stream stream);

}  // namespace fuseline::cuda
