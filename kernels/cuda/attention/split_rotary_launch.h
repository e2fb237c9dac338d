// Launch of a Split with rotary embeddings. Plain C++: the kernel is in split_rotary_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>

namespace fuseline::cuda {

/// The quantized form of a part, and its amax. Both follow from its rounded elements.
struct RotaryCodes {
  std::uint8_t* codes = nullptr;  // [rows, width of the part]; null: not wanted
  float* inverse = nullptr;       // the scale with which they are dequantized
  const float* scale = nullptr;
  float* amax = nullptr;  // raised; null: not wanted
  device::FloatCode code = device::FloatCode::E4M3;
};

/// Some columns of the packed tensor, and the tensor that has them by themselves.
struct RotaryColumns {
  void* data = nullptr;        // of the part; null: nothing is written, or zeros are read
  std::int64_t rowStride = 0;  // of the part, in elements
  bool isInPlace = false;      // the part is these columns already, and they do not change
  std::int64_t first = 0;      // column
  std::int64_t width = 0;
  std::int64_t channels = 1;  // of a head
  std::int64_t numPairs = 0;  // that turn; 0: the part is copied
  bool isInterleaved = false;
  bool isTokenFirst = true;  // rows are [tokens, batch], else [batch, tokens]
  std::int64_t batch = 1;
  std::int64_t tokens = 0;  // of a batch entry
  float cosineFactor = 1.0F;
  float sineFactor = 1.0F;               // negative: turns back
  int firstTurn = 0;                     // of the task's turns
  std::int64_t offset = 0;               // position of a sequence's first token
  const std::int64_t* sums = nullptr;    // of sequence lengths; null: each batch entry is a sequence
  std::int64_t numSequences = 0;         // where there are sums
  const std::int64_t* starts = nullptr;  // added to the positions of each sequence; null: nothing is
  RotaryCodes codes;                     // forward
};

struct SplitRotaryTask {
  static constexpr int kMaxParts = 8;
  static constexpr int kMaxTurns = 256;  // of all parts; the arguments of a kernel take 4 KB

  void* packed = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  device::Element element = device::Element::F32;
  bool isBackward = false;     // parts to packed
  const void* bias = nullptr;  // forward: added to each row; null: nothing is
  bool isVectorized = false;   // widths, channels and pairs are whole packets
  int numParts = 0;
  RotaryColumns parts[kMaxParts];
  std::uint64_t turns[kMaxTurns] = {};  // a token, in 2^-64 of a full turn
};

void launchSplitRotary(const SplitRotaryTask& task, Stream stream);

/// Backward, with the bias gradient: sums of columns of the packed gradient, by group of rows first, so that runs are
/// bitwise identical.
struct SplitRotarySums {
  float* parts = nullptr;  // [groups, width]
  int groups = 1;
  void* biasGradient = nullptr;
};
/// The number of groups of rows that occupies the device.
int numSumGroups(const SplitRotaryTask& task, int numMultiprocessors);
void launchSplitRotary(const SplitRotaryTask& task, const SplitRotarySums& sums, Stream stream);

}  // namespace fuseline::cuda
