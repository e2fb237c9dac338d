// Uniform and normal numbers from Philox blocks: one block of four words makes two values.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fuseline {

namespace {

/// FNV-1a, 64 bits.
std::uint64_t hashOf(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

constexpr std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

/// Uses the upper 53 of 64 bits, the precision of a double.
double unitInterval(std::uint32_t lowWord, std::uint32_t highWord) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(highWord) << 32) | lowWord;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// Fills `out` with values, beginning with index `first`, from a function that returns them in pairs.
template <class PairAt>
void fillFromPairs(std::uint64_t first, std::span<double> out, PairAt pairAt) {
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t index = first + i;
    const auto pair = pairAt(index / 2);
    for (std::size_t half = index % 2; half < 2 && i < out.size(); ++half) out[i++] = pair[half];
  }
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view name)
    : m_key{low(seed), high(seed)}, m_stream(hashOf(name)) {}

RandomStream::Pair RandomStream::uniformPair(std::uint64_t pair) const {
  const PhiloxCounter words = philox4x32({low(pair), high(pair), low(m_stream), high(m_stream)}, m_key);
  return {unitInterval(words[0], words[1]), unitInterval(words[2], words[3])};
}

RandomStream::Pair RandomStream::normalPair(std::uint64_t pair) const {
  const auto [u, v] = uniformPair(pair);
  const double radius = std::sqrt(-2.0 * std::log1p(-u));  // 1 - u is never 0
  const double angle = 2.0 * std::numbers::pi * v;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

double RandomStream::uniform(std::uint64_t index) const { return uniformPair(index / 2)[index % 2]; }

double RandomStream::normal(std::uint64_t index) const { return normalPair(index / 2)[index % 2]; }

void RandomStream::uniforms(std::uint64_t first, std::span<double> out) const {
  fillFromPairs(first, out, [this](std::uint64_t pair) { return uniformPair(pair); });
}

void RandomStream::normals(std::uint64_t first, std::span<double> out) const {
  fillFromPairs(first, out, [this](std::uint64_t pair) { return normalPair(pair); });
}

DropoutMask::DropoutMask(double p, std::uint64_t seed, std::string_view name, std::uint64_t first)
    : m_key{low(seed), high(seed)},
      m_stream{low(hashOf(name)), high(hashOf(name))},
      m_threshold(static_cast<std::uint32_t>(std::min(std::round(p * 0x1p32), 0x1p32 - 1.0))),
      m_first(first) {}

bool DropoutMask::keeps(std::uint64_t index) const {
  index += m_first;
  const std::uint64_t block = index / 4;
  return philox4x32({low(block), high(block), m_stream[0], m_stream[1]}, m_key)[index % 4] >= m_threshold;
}

RandomBytes::RandomBytes(std::uint64_t seed, std::string_view name)
    : m_key{low(seed), high(seed)}, m_stream{low(hashOf(name)), high(hashOf(name))} {}

namespace {

std::uint8_t byteOf(const PhiloxCounter& words, std::uint64_t index) {
  return static_cast<std::uint8_t>(words[index % 16 / 4] >> (8 * (index % 4)));
}

}  // namespace

PhiloxCounter RandomBytes::block(std::uint64_t index) const {
  return philox4x32({low(index), high(index), m_stream[0], m_stream[1]}, m_key);
}

std::uint8_t RandomBytes::at(std::uint64_t index) const { return byteOf(block(index / 16), index); }

void RandomBytes::fill(std::uint64_t first, std::span<std::uint8_t> out) const {
  PhiloxCounter words = block(first / 16);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t index = first + i;
    if (i > 0 && index % 16 == 0) words = block(index / 16);
    out[i] = byteOf(words, index);
  }
}

}  // namespace fuseline
