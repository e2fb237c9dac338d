// Random numbers by address: the value at (seed, stream name, index) does not depend on the caller, the time or the
// order. The same seed therefore gives the same data on any number of threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace fuseline {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Philox4x32 with 10 rounds. Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr int kRounds = 10;
  constexpr std::array<std::uint64_t, 2> kMultiplier = {0xD2511F53u, 0xCD9E8D57u};
  constexpr std::array<std::uint32_t, 2> kWeyl = {0x9E3779B9u, 0xBB67AE85u};
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier[0] * counter[0];
    const std::uint64_t product1 = kMultiplier[1] * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl[0], key[1] + kWeyl[1]};
  }
  return counter;
}

/// One sequence of numbers for each (seed, name). Cheap to copy.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform(std::uint64_t index) const;
  /// N(0, 1) by the Box-Muller transform.
  double normal(std::uint64_t index) const;

  /// The values at first, first + 1 ...; the same as asking one by one, in half the time.
  void uniforms(std::uint64_t first, std::span<double> out) const;
  void normals(std::uint64_t first, std::span<double> out) const;

 private:
  using Pair = std::array<double, 2>;
  /// The values at 2 * pair and 2 * pair + 1.
  Pair uniformPair(std::uint64_t pair) const;
  Pair normalPair(std::uint64_t pair) const;

  PhiloxKey m_key;
  std::uint64_t m_stream;
};

/// Elements that a dropout drops: determined by seed, name and index of the element, independent of caller, time and
/// order. Cheap to copy.
class DropoutMask {
 public:
  /// Drops nothing.
  DropoutMask() = default;
  /// Drops with the probability p, in [0, 1), to the nearest multiple of 2^-32.
  /// first: added to the index of every element, for a part of a larger tensor.
  DropoutMask(double p, std::uint64_t seed, std::string_view name, std::uint64_t first = 0);

  /// Element i, counted from the first, has word i % 4 of block i / 4, and is kept if that is not below the threshold.
  bool keeps(std::uint64_t index) const;

  PhiloxKey key() const { return m_key; }
  /// The upper two words of every counter.
  std::array<std::uint32_t, 2> stream() const { return m_stream; }
  std::uint32_t threshold() const { return m_threshold; }
  std::uint64_t first() const { return m_first; }
  bool operator==(const DropoutMask&) const = default;

 private:
  PhiloxKey m_key = {};
  std::array<std::uint32_t, 2> m_stream = {};
  std::uint32_t m_threshold = 0;
  std::uint64_t m_first = 0;
};

/// Random bytes by seed, name and index, for stochastic rounding. Cheap to copy.
class RandomBytes {
 public:
  RandomBytes(std::uint64_t seed, std::string_view name);

  /// Byte i is byte i % 16 of block i / 16, counted from the lowest of the first word.
  std::uint8_t at(std::uint64_t index) const;
  /// The bytes at first, first + 1 ...; the same as asking one by one, in a sixteenth of the time.
  void fill(std::uint64_t first, std::span<std::uint8_t> out) const;

  PhiloxKey key() const { return m_key; }
  /// The upper two words of every counter.
  std::array<std::uint32_t, 2> stream() const { return m_stream; }

 private:
  PhiloxCounter block(std::uint64_t index) const;

  PhiloxKey m_key;
  std::array<std::uint32_t, 2> m_stream;
};

}  // namespace fuseline
