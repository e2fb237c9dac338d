// Random streams: known answers, independence of order, and the shape of the distributions.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/random.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

// The known answers are those of Random123's kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, MatchesKnownAnswerForZeros) {
  const PhiloxCounter expected = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), expected);
}

TEST(Philox, MatchesKnownAnswerForOnes) {
  constexpr std::uint32_t kOnes = 0xffffffffu;
  const PhiloxCounter expected = {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu};
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}), expected);
}

TEST(Philox, MatchesKnownAnswerForDigitsOfPi) {
  const PhiloxCounter expected = {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u};
  EXPECT_EQ(philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}), expected);
}

TEST(RandomStream, StripsAreTheSameAsSingleValuesFromAnyStart) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed, const std::string& name) {
    const auto first = *rc::gen::inRange<std::uint64_t>(0, 1'000'000'000'000);
    const auto count = *rc::gen::inRange<std::size_t>(0, 9);
    const RandomStream stream(seed, name);
    std::vector<double> uniforms(count);
    std::vector<double> normals(count);
    stream.uniforms(first, uniforms);
    stream.normals(first, normals);
    for (std::size_t i = 0; i < count; ++i) {
      RC_ASSERT(uniforms[i] == stream.uniform(first + i));
      RC_ASSERT(normals[i] == stream.normal(first + i));
    }
  }));
}

TEST(RandomStream, DiffersBySeedAndByName) {
  const double reference = RandomStream(1234, "x").uniform(7);
  EXPECT_NE(reference, RandomStream(1235, "x").uniform(7));
  EXPECT_NE(reference, RandomStream(1234 + (1ull << 40), "x").uniform(7));
  EXPECT_NE(reference, RandomStream(1234, "y").uniform(7));
  EXPECT_NE(reference, RandomStream(1234, "x").uniform(8));
}

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
  double kurtosis = 0.0;
};

Moments momentsOf(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Moments moments;
  for (const double value : values) moments.mean += value / n;
  double fourth = 0.0;
  for (const double value : values) {
    const double square = (value - moments.mean) * (value - moments.mean);
    moments.variance += square / n;
    fourth += square * square / n;
  }
  moments.kurtosis = fourth / (moments.variance * moments.variance);
  return moments;
}

// The tolerances are five standard errors of each statistic for 2^20 values.
TEST(RandomStream, NormalsHaveTheMomentsOfTheNormalDistribution) {
  std::vector<double> values(1 << 20);
  RandomStream(1, "weights").normals(0, values);
  const Moments moments = momentsOf(values);
  EXPECT_NEAR(moments.mean, 0.0, 5.0 / 1024.0);
  EXPECT_NEAR(moments.variance, 1.0, 5.0 * std::sqrt(2.0) / 1024.0);
  EXPECT_NEAR(moments.kurtosis, 3.0, 5.0 * std::sqrt(24.0) / 1024.0);
}

TEST(RandomStream, UniformsFillTheUnitIntervalEvenly) {
  std::vector<double> values(1 << 20);
  RandomStream(2, "weights").uniforms(0, values);
  std::vector<int> counts(16);
  for (const double value : values) {
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ++counts[static_cast<std::size_t>(value * 16)];
  }
  double chiSquare = 0.0;
  for (const int count : counts) chiSquare += (count - 65536.0) * (count - 65536.0) / 65536.0;
  EXPECT_LT(chiSquare, 44.3);  // 15 degrees of freedom, probability 1e-4
}

TEST(DropoutMask, ComparesTheWordsOfTheGeneratorWithTheThreshold) {
  const DropoutMask mask(0.5, 42, "op");
  EXPECT_EQ(mask.threshold(), 0x80000000u);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const PhiloxCounter words = philox4x32({i / 4, 0, mask.stream()[0], mask.stream()[1]}, {42, 0});
    EXPECT_EQ(mask.keeps(i), words[i % 4] >= 0x80000000u) << i;
  }
}

TEST(DropoutMask, DropsWithAProbabilityThatIsExactTo32Bits) {
  EXPECT_EQ(DropoutMask(0.0, 1, "op").threshold(), 0u);
  EXPECT_EQ(DropoutMask(0x1p-32, 1, "op").threshold(), 1u);
  EXPECT_EQ(DropoutMask(0.1, 1, "op").threshold(), 429496730u);  // 2^32 / 10 = 429496729.6
  EXPECT_EQ(DropoutMask(1.0 - 0x1p-40, 1, "op").threshold(), 0xffffffffu);
}

// Five standard deviations of the number of dropped elements.
TEST(DropoutMask, DropsTheAskedShare) {
  constexpr int kCount = 1 << 20;
  for (const double p : {0.001, 0.1, 0.5, 0.9}) {
    const DropoutMask mask(p, 7, "op");
    double dropped = 0;
    for (int i = 0; i < kCount; ++i) dropped += mask.keeps(static_cast<std::uint64_t>(i)) ? 0 : 1;
    EXPECT_NEAR(dropped / kCount, p, 5.0 * std::sqrt(p * (1.0 - p) / kCount));
  }
}

// Two independent masks agree in half of the elements.
TEST(DropoutMask, DiffersBySeedAndByName) {
  const auto agreement = [](const DropoutMask& a, const DropoutMask& b) {
    constexpr int kCount = 1 << 16;
    int same = 0;
    for (std::uint64_t i = 0; i < kCount; ++i) same += a.keeps(i) == b.keeps(i) ? 1 : 0;
    return static_cast<double>(same) / kCount;
  };
  const DropoutMask mask(0.5, 7, "op");
  EXPECT_EQ(agreement(mask, DropoutMask(0.5, 7, "op")), 1.0);
  EXPECT_NEAR(agreement(mask, DropoutMask(0.5, 8, "op")), 0.5, 0.02);
  EXPECT_NEAR(agreement(mask, DropoutMask(0.5, 7, "other")), 0.5, 0.02);
}

// The words of the first block for a stream without a name; the hash of the empty name is FNV's offset basis.
TEST(RandomBytes, AreTheBytesOfTheGeneratorsWords) {
  const RandomBytes bytes(7, "");
  for (std::uint32_t block = 0; block < 3; ++block) {
    const PhiloxCounter words = philox4x32({block, 0, 0x84222325u, 0xcbf29ce4u}, {7, 0});
    for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(bytes.at(block * 16 + i), (words[i / 4] >> (i % 4 * 8)) & 0xffu);
  }
}

TEST(RandomBytes, FillTheirRangeEvenly) {
  constexpr int kCount = 1 << 20;
  std::vector<int> counts(256);
  for (std::uint64_t i = 0; i < kCount; ++i) ++counts[RandomBytes(3, "x").at(i)];
  double chiSquare = 0.0;
  for (const int count : counts) chiSquare += (count - 4096.0) * (count - 4096.0) / 4096.0;
  EXPECT_LT(chiSquare, 347.7);  // 255 degrees of freedom, probability 1e-4
}

}  // namespace
}  // namespace fuseline
