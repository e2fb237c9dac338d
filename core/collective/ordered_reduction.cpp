// Adds block by block, so that the float32 sums stay in the cache.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/ordered_reduction.h"

#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace fuseline {

namespace {

constexpr std::int64_t kBlock = 2048;

struct F32Code {
  using Bits = float;
  static float decode(float value) { return value; }
  static float encode(float value) { return value; }
};
struct Bf16Code {
  using Bits = std::uint16_t;
  static float decode(std::uint16_t bits) { return bf16ToFloat(bits); }
  static std::uint16_t encode(float value) { return floatToBf16(value); }
};
struct F16Code {
  using Bits = std::uint16_t;
  static float decode(std::uint16_t bits) { return f16ToFloat(bits); }
  static std::uint16_t encode(float value) { return floatToF16(value); }
};

template <class Code>
typename Code::Bits load(const std::byte* from, std::int64_t index) {
  typename Code::Bits bits;
  std::memcpy(&bits, from + static_cast<std::size_t>(index) * sizeof(bits), sizeof(bits));
  return bits;
}

template <class Code>
void addBlock(Reduction reduction, const std::byte* from, std::int64_t first, std::span<float> totals) {
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const float value = Code::decode(load<Code>(from, first + static_cast<std::int64_t>(i)));
    if (reduction == Reduction::Sum)
      totals[i] += value;
    else if (!(value <= totals[i]) && value == value)
      totals[i] = value;
  }
}

template <class Code>
void reduce(Reduction reduction, std::span<const std::byte* const> contributions, std::int64_t count, std::byte* out) {
  std::array<float, kBlock> block{};
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::span totals(block.data(), static_cast<std::size_t>(std::min(kBlock, count - first)));
    for (std::size_t i = 0; i < totals.size(); ++i)
      totals[i] = Code::decode(load<Code>(contributions.front(), first + static_cast<std::int64_t>(i)));
    for (const std::byte* const from : contributions.subspan(1)) addBlock<Code>(reduction, from, first, totals);
    for (std::size_t i = 0; i < totals.size(); ++i) {
      const typename Code::Bits bits = Code::encode(totals[i]);
      std::memcpy(out + (static_cast<std::size_t>(first) + i) * sizeof(bits), &bits, sizeof(bits));
    }
  }
}

}  // namespace

ElementRange sliceOf(std::int64_t count, int owner, int ranks) {
  const std::int64_t share = (count + ranks - 1) / ranks;
  const std::int64_t first = std::min(count, share * owner);
  return {first, std::min(share, count - first)};
}

void reduceInRankOrder(Reduction reduction, DType dtype, std::span<const std::byte* const> contributions,
                       std::int64_t count, std::byte* out) {
  assert(isFloat(dtype));
  if (dtype == DType::F32) return reduce<F32Code>(reduction, contributions, count, out);
  if (dtype == DType::BF16) return reduce<Bf16Code>(reduction, contributions, count, out);
  reduce<F16Code>(reduction, contributions, count, out);
}

}  // namespace fuseline
