// NVFP4 by lines of 16 values: their transform, their encoding and decoding. The bits equal those of core/quant.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/hadamard.h"
#include "core/numerics/nvfp4.h"
#include "core/numerics/round_to_odd.h"
#include "kernels/cuda/device/code_tile.h"
#include "kernels/cuda/device/dropout.h"
#include "kernels/cuda/device/nvfp4_data.h"

#include <bit>
#include <cstdint>

namespace fuseline::cuda::device {

/// A block of values with one scale, or a row or a column of one.
constexpr int kLine = kHadamardSize;
/// Sixteen encoded values, the first in the lower half of the lowest byte.
using LineCodes = std::uint64_t;

/// Position of a line in a matrix of encoded values as stored: whole bytes per row.
struct LinePlace {
  std::int64_t row = 0;
  std::int64_t line = 0;  // index of the line within the row
};

inline __device__ std::int64_t linesIn(std::int64_t extent) { return (extent + kLine - 1) / kLine; }

inline __device__ int bytesOf(const LinePlace& place, std::int64_t cols) {
  const std::int64_t left = (cols - place.line * kLine + 1) / 2;
  return left < kPatch ? static_cast<int>(left) : kPatch;
}

inline __device__ std::int64_t firstByteOf(const LinePlace& place, std::int64_t cols) {
  return place.row * ((cols + 1) / 2) + place.line * kPatch;
}

inline __device__ float largestOfLine(const float (&line)[kLine]) {
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < kLine; ++i) largest = largerOf(fabsf(line[i]), largest);
  return largest;
}

/// Applies change(x) to the line in double, and rounded(double) to each result.
template <class Change, class Rounded>
__device__ void changeInDouble(float (&line)[kLine], const Change& change, const Rounded& rounded) {
  double x[kLine];
#pragma unroll
  for (int i = 0; i < kLine; ++i) x[i] = static_cast<double>(line[i]);
  change(x);
#pragma unroll
  for (int i = 0; i < kLine; ++i) line[i] = rounded(x[i]);
}

/// Are all sums of the transform exact in float32? The values are multiples of the smallest one's last bit, and a sum
/// of all 16 is below 2^5 times the largest one's first bit: bf16 values may be 2^12 apart, f16 values 2^9.
inline __device__ bool hasExactSums(const float (&line)[kLine]) {
  constexpr std::uint32_t kMantissaBits = 23;
  constexpr std::uint32_t kSafeExponents[] = {30, 250};  // nothing underflows or overflows between them
  std::uint32_t all = 1u << kMantissaBits;
  std::uint32_t largest = 0;
  std::uint32_t smallest = kSafeExponents[1] << kMantissaBits;
#pragma unroll
  for (int i = 0; i < kLine; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(line[i]) & 0x7fff'ffffu;
    all |= magnitude;
    largest = magnitude > largest ? magnitude : largest;
    const std::uint32_t below = magnitude - 1;  // zero becomes the largest number
    smallest = below < smallest ? below : smallest;
  }
  const std::uint32_t lastBit = std::bit_cast<std::uint32_t>(static_cast<float>(all & (0u - all)));
  const std::uint32_t freeBits = (lastBit >> kMantissaBits) - 127;  // at the end of every mantissa
  const std::uint32_t last = largest >> kMantissaBits;
  const std::uint32_t first = smallest >> kMantissaBits;
  return last < kSafeExponents[1] && first >= kSafeExponents[0] && last + 4 <= first + freeBits;
}

/// Rounded once, to bf16. Most lines need no double, whose rate is 1/64 of float32's on GPUs of 10.3 and 12.x.
inline __device__ void transformLine(float (&line)[kLine]) {
  if (hasExactSums(line)) {
    randomHadamard(line);
#pragma unroll
    for (int i = 0; i < kLine; ++i) line[i] = bf16ToFloat(bf16OfFloat(line[i]));
    return;
  }
  changeInDouble(
      line, [](double(&x)[kLine]) { randomHadamard(x); },
      [](double value) { return bf16ToFloat(bf16OfFloat(roundedToOdd(value))); });
}

inline __device__ void transformLineBack(float (&line)[kLine]) {
  changeInDouble(
      line, [](double(&x)[kLine]) { inverseRandomHadamard(x); },
      [](double value) { return static_cast<float>(value); });
}

/// Random bytes of a line that begins anywhere: from one block of sixteen, or from two.
class LineBytes {
 public:
  __device__ LineBytes(const RoundingBytes& random, std::uint64_t first)
      : m_offset(static_cast<int>(first % kLine)), m_words(blockOf(random, first / kLine)), m_next(m_words) {
    if (m_offset != 0) m_next = blockOf(random, first / kLine + 1);
  }

  __device__ std::uint8_t at(int i) const {
    const int position = m_offset + i;
    const std::uint64_t word = static_cast<std::uint64_t>(position / 4);  // wordOf() uses two bits of it
    const std::uint32_t drawn = position < kLine ? wordOf(m_words, word) : wordOf(m_next, word);
    return static_cast<std::uint8_t>(drawn >> (8 * (position % 4)));
  }

 private:
  static __device__ PhiloxWords blockOf(const RoundingBytes& random, std::uint64_t block) {
    return philox({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), random.stream[0],
                    random.stream[1]}},
                  random.key[0], random.key[1]);
  }

  int m_offset;
  PhiloxWords m_words;
  PhiloxWords m_next;
};

inline __device__ LineCodes encodeLine(const float (&line)[kLine], float multiplier) {
  LineCodes codes = 0;
#pragma unroll
  for (int i = 0; i < kLine; ++i) codes |= static_cast<LineCodes>(E2m1::fromFloat(line[i] * multiplier)) << (4 * i);
  return codes;
}

inline __device__ LineCodes encodeLine(const float (&line)[kLine], float multiplier, const LineBytes& random) {
  LineCodes codes = 0;
#pragma unroll
  for (int i = 0; i < kLine; ++i)
    codes |= static_cast<LineCodes>(E2m1::fromFloatStochastic(line[i] * multiplier, random.at(i))) << (4 * i);
  return codes;
}

/// Stores the encoded values of a line of a tensor with `cols` columns. multiplier: that of the line's block.
inline __device__ void storeLine(const Nvfp4Copy& copy, std::int64_t cols, const LinePlace& place,
                                 const float (&line)[kLine], float multiplier) {
  const auto first = static_cast<std::uint64_t>(place.row * cols + place.line * kLine);
  const LineCodes codes =
      copy.isStochastic ? encodeLine(line, multiplier, LineBytes(copy.random, first)) : encodeLine(line, multiplier);
  storePacket(copy.codes + firstByteOf(place, cols), codes, bytesOf(place, cols));
}

inline __device__ LineCodes loadLine(const std::uint8_t* codes, std::int64_t cols, const LinePlace& place) {
  const std::uint8_t* const from = codes + firstByteOf(place, cols);
  const int count = bytesOf(place, cols);
  if (count == kPatch && reinterpret_cast<std::uintptr_t>(from) % sizeof(LineCodes) == 0)
    return loadPacket(from, kPatch);
  LineCodes loaded = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) loaded |= static_cast<LineCodes>(from[i]) << (8 * i);
  return loaded;
}

inline __device__ void decodeLine(LineCodes codes, float factor, float (&line)[kLine]) {
#pragma unroll
  for (int i = 0; i < kLine; ++i) line[i] = E2m1::toFloat(static_cast<std::uint8_t>(codes >> (4 * i) & 0xfu)) * factor;
}

}  // namespace fuseline::cuda::device
