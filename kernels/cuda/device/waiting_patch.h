// Memory in which a tile's elements wait until all have been computed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/code_tile.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// The rows of a thread's patch, in their stored format, in shared memory, which leaves the registers to the
/// computation. A thread takes only its own rows.
template <Element kElement>
class WaitingPatch {
 public:
  static constexpr int kTileBytes = kTileSide * kTileSide * sizeof(typename Codec<kElement>::Bits);

  static constexpr int kRowsUnrolled = 2;

  explicit __device__ WaitingPatch(void* memory) : m_accesses(static_cast<Access*>(memory)) {}

  __device__ void put(int row, const float (&values)[kPatch]) const {
#pragma unroll
    for (int first = 0; first < kPatch; first += kTogether) {
      Access access;
      encodeWords<kElement>(values + first, access.elements);
      accessAt(row, first) = access;
    }
  }
  __device__ void row(int row, float (&x)[kPatch]) const {
#pragma unroll
    for (int first = 0; first < kPatch; first += kTogether) {
      const Access access = accessAt(row, first);
#pragma unroll
      for (int i = 0; i < kTogether; ++i) x[first + i] = Codec<kElement>::decode(bitsIn<Bits>(access.elements, i));
    }
  }

 private:
  using Bits = typename Codec<kElement>::Bits;
  static constexpr int kTogether = kAccessBytes / sizeof(Bits);
  using Access = Packet<std::uint32_t, kAccessBytes / sizeof(std::uint32_t)>;

  /// Adjacent threads access adjacent words, without bank conflicts.
  __device__ Access& accessAt(int row, int col) const {
    const int access = (row * kPatch + col) / kTogether;
    return m_accesses[access * kTileThreads + tileThread()];
  }

  Access* m_accesses;
};

/// The encoded values of a thread's patch, in shared memory, until those of a whole tile can be transposed.
class WaitingCodes {
 public:
  static constexpr int kTileBytes = kTileSide * kTileSide;

  explicit __device__ WaitingCodes(void* memory) : m_packets(static_cast<CodePacket*>(memory)) {}

  __device__ void put(int row, CodePacket packet) const { m_packets[row * kTileThreads + tileThread()] = packet; }
  __device__ void take(CodePacket (&packets)[kPatch]) const {
#pragma unroll
    for (int row = 0; row < kPatch; ++row) packets[row] = m_packets[row * kTileThreads + tileThread()];
  }

 private:
  CodePacket* m_packets;
};

}  // namespace fuseline::cuda::device
