// Launches around attention of sequences by a library: tables for it, and rows that it leaves open. Plain C++: the
// kernels are in sequence_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/attention_launch.h"

#include <cstdint>

namespace fuseline::cuda {

/// Lengths of sequences, and where they begin in tensors.
struct SequenceTables {
  struct Offsets {
    std::int64_t* to = nullptr;  // [sequences + 1], in elements
    const std::int64_t* sums = nullptr;
    std::int64_t tokenStride = 0;
  };
  static constexpr int kMaxOffsets = 10;

  std::int64_t numSequences = 0;
  const std::int64_t* sumsQ = nullptr;  // null: each sequence has all queries and keys
  const std::int64_t* sumsKv = nullptr;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int32_t* lengthsQ = nullptr;  // [sequences]
  std::int32_t* lengthsKv = nullptr;
  int numOffsets = 0;
  Offsets offsets[kMaxOffsets];
};
void launchSequenceTables(const SequenceTables& tables, Stream stream);

/// The log-sum-exp of rows as gradients read it: where a row sees no key, a number beside which every exponential is 0.
struct SeenStatistics {
  ScoreRules rules;
  std::int64_t entries = 1;
  const float* lse = nullptr;  // of the whole attention
  float* to = nullptr;
};
void launchSeenStatistics(const SeenStatistics& statistics, Stream stream);

/// Rows of tokens that see no key become 0, and their log-sum-exp minus infinity.
struct UnseenRows {
  ScoreRules rules;
  device::Element element = device::Element::F32;
  void* data = nullptr;
  float* lse = nullptr;  // null: not wanted
  std::int64_t entries = 1;
  std::int64_t heads = 1;
  std::int64_t channels = 1;
  std::int64_t batchStride = 0;
  std::int64_t tokenStride = 0;
  std::int64_t headStride = 0;
};
void launchClearUnseen(const UnseenRows& rows, Stream stream);

}  // namespace fuseline::cuda
