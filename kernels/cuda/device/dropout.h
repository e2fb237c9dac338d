// Which elements a dropout keeps: core/numerics' DropoutMask, element for element.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"

#include <cstdint>

namespace fuseline::cuda::device {

struct PhiloxWords {
  std::uint32_t words[4];
};

/// Philox4x32 with 10 rounds, as in core/numerics/random.h, without arrays: not every device compiler has std::array.
inline __device__ PhiloxWords philox(PhiloxWords c, std::uint32_t key0, std::uint32_t key1) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = 0xD2511F53ull * c.words[0];
    const std::uint64_t product1 = 0xCD9E8D57ull * c.words[2];
    c = {{static_cast<std::uint32_t>(product1 >> 32) ^ c.words[1] ^ key0, static_cast<std::uint32_t>(product1),
          static_cast<std::uint32_t>(product0 >> 32) ^ c.words[3] ^ key1, static_cast<std::uint32_t>(product0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

/// The words of elements 4 * block to 4 * block + 3.
inline __device__ PhiloxWords dropoutBlock(const Dropout& mask, std::uint64_t block) {
  return philox(
      {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), mask.stream[0], mask.stream[1]}},
      mask.key[0], mask.key[1]);
}

/// Word `index` of a block, without an array in memory.
inline __device__ std::uint32_t wordOf(const PhiloxWords& drawn, std::uint64_t index) {
  const std::uint32_t low = index & 1 ? drawn.words[1] : drawn.words[0];
  const std::uint32_t high = index & 1 ? drawn.words[3] : drawn.words[2];
  return index & 2 ? high : low;
}

/// Elements in a block.
constexpr int kDropoutBlock = 4;

/// drop() from the element `begin` of the mask on, which is the first of a block, or any where kVector is 1.
template <int kVector>
__device__ void dropWholeBlocks(const Dropout& mask, float kept, std::uint64_t begin, float (&out)[kVector]) {
#pragma unroll
  for (int i = 0; i < kVector; i += kDropoutBlock) {
    const PhiloxWords drawn = dropoutBlock(mask, (begin + static_cast<std::uint64_t>(i)) / kDropoutBlock);
#pragma unroll
    for (int v = i; v < kVector && v < i + kDropoutBlock; ++v)
      out[v] = wordOf(drawn, kVector == 1 ? begin : static_cast<std::uint64_t>(v)) < mask.threshold ? 0.0f : kept;
  }
}

/// The same from any element on: each block of elements has words of two.
template <int kVector>
__device__ void dropParts(const Dropout& mask, float kept, std::uint64_t begin, float (&out)[kVector]) {
  const std::uint64_t shift = begin % kDropoutBlock;
  PhiloxWords drawn = dropoutBlock(mask, begin / kDropoutBlock);
#pragma unroll
  for (int i = 0; i < kVector; i += kDropoutBlock) {
    const PhiloxWords next = dropoutBlock(mask, (begin + static_cast<std::uint64_t>(i)) / kDropoutBlock + 1);
#pragma unroll
    for (int v = i; v < kVector && v < i + kDropoutBlock; ++v) {
      const std::uint64_t at = shift + static_cast<std::uint64_t>(v - i);
      const std::uint32_t word = at < kDropoutBlock ? wordOf(drawn, at) : wordOf(next, at);
      out[v] = word < mask.threshold ? 0.0f : kept;
    }
    drawn = next;
  }
}

/// out[i] = `kept` where element first + i of the tensor is kept, else 0. kVector: 1 or a multiple of four (a Philox
/// block has four elements).
template <int kVector>
__device__ void drop(const Dropout& mask, float kept, std::uint64_t first, float (&out)[kVector]) {
  static_assert(kVector == 1 || kVector % kDropoutBlock == 0);
  const std::uint64_t begin = mask.first + first;
  if (kVector == 1 || begin % kDropoutBlock == 0) return dropWholeBlocks<kVector>(mask, kept, begin, out);
  dropParts<kVector>(mask, kept, begin, out);
}

}  // namespace fuseline::cuda::device
