// E4M3, E5M2 and E2M1: every code by its definition, encoding against a search of the nearest value.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/minifloat.h"

#include "tests/support/encode_sweep.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using testing::MinifloatDefinition;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The strided sweep takes about 20 million of the 2^32 floats.
constexpr std::uint32_t kPrimeStride = 211;

template <class Format>
const MinifloatDefinition& definitionOf() {
  if constexpr (std::is_same_v<Format, E4m3>) return testing::kE4M3Definition;
  if constexpr (std::is_same_v<Format, E5m2>) return testing::kE5M2Definition;
  if constexpr (std::is_same_v<Format, E2m1>) return testing::kE2M1Definition;
}

template <class T>
class MinifloatTest : public ::testing::Test {
 public:
  const MinifloatDefinition& format = definitionOf<T>();

  /// Every code with and without a sign.
  template <class Visit>
  void forEachFinite(Visit visit) const {
    for (int code = 0; code <= format.maxCode; ++code) {
      visit(static_cast<std::uint8_t>(code));
      visit(static_cast<std::uint8_t>(code | format.signBit()));
    }
  }
};

struct FormatNames {
  template <class T>
  static std::string GetName(int) {
    return definitionOf<T>().name;
  }
};
using Formats = ::testing::Types<E4m3, E5m2, E2m1>;
TYPED_TEST_SUITE(MinifloatTest, Formats, FormatNames);

TYPED_TEST(MinifloatTest, DecodesEveryFiniteCodeToItsDefinition) {
  this->forEachFinite([&](std::uint8_t code) {
    const float value = TypeParam::toFloat(code);
    EXPECT_EQ(static_cast<double>(value), this->format.valueOf(code)) << int{code};
    EXPECT_EQ(std::signbit(value), (code & this->format.signBit()) != 0) << int{code};
  });
}

TYPED_TEST(MinifloatTest, DecodesEveryOtherCodeToInfinityOrNan) {
  for (int code = this->format.maxCode + 1; code < this->format.signBit(); ++code) {
    const bool isInfinity = code == this->format.infinityCode;
    const float value = TypeParam::toFloat(static_cast<std::uint8_t>(code));
    const float negative = TypeParam::toFloat(static_cast<std::uint8_t>(code | this->format.signBit()));
    EXPECT_EQ(value == kInfinity, isInfinity) << code;
    EXPECT_EQ(negative == -kInfinity, isInfinity) << code;
    EXPECT_EQ(std::isnan(value), !isInfinity) << code;
    EXPECT_EQ(TypeParam::isNan(static_cast<std::uint8_t>(code)), !isInfinity) << code;
  }
}

TYPED_TEST(MinifloatTest, EveryFiniteCodeSurvivesTheRoundTrip) {
  this->forEachFinite([&](std::uint8_t code) { EXPECT_EQ(TypeParam::fromFloat(TypeParam::toFloat(code)), code); });
}

TYPED_TEST(MinifloatTest, EncodesToTheNearestValueAndTiesToEven) {
  testing::sweepEncoder<TypeParam>(this->format, kPrimeStride);
}

/// The float halfway between two neighbors is exact: a float has more bits than any of the formats.
TYPED_TEST(MinifloatTest, RoundsTiesToEvenAndWhatIsBesideThemToNearest) {
  for (int code = 0; code < this->format.maxCode; ++code) {
    const auto tie = static_cast<float>((this->format.valueOf(code) + this->format.valueOf(code + 1)) / 2);
    EXPECT_EQ(TypeParam::fromFloat(tie), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(TypeParam::fromFloat(std::nextafter(tie, 0.0f)), code);
    EXPECT_EQ(TypeParam::fromFloat(std::nextafter(tie, kInfinity)), code + 1);
  }
}

TYPED_TEST(MinifloatTest, KeepsTheSignOfWhatRoundsToZeroAndDropsThatOfNan) {
  const int sign = this->format.signBit();
  EXPECT_EQ(TypeParam::fromFloat(0.0f), 0);
  EXPECT_EQ(TypeParam::fromFloat(-0.0f), sign);
  EXPECT_EQ(TypeParam::fromFloat(-std::numeric_limits<float>::denorm_min()), sign);
  EXPECT_EQ(TypeParam::fromFloat(kNan), this->format.nanCode);
  EXPECT_EQ(TypeParam::fromFloat(-kNan), this->format.nanCode);
}

/// Position of |x| between adjacent values, in 256ths of a step and rounded down, by the definition.
int positionOf(const MinifloatDefinition& format, double magnitude) {
  int code = 0;
  while (code < format.maxCode && format.valueOf(code + 1) <= magnitude) ++code;
  const double below = format.valueOf(code);
  const double step = code == format.maxCode ? format.afterMax() - below : format.valueOf(code + 1) - below;
  return code * 256 + static_cast<int>(std::floor((magnitude - below) / step * 256.0));
}

TYPED_TEST(MinifloatTest, StochasticRoundingAddsTheRandomFractionOfAStep) {
  const double largest = this->format.valueOf(this->format.maxCode);
  for (int i = 0; i <= 2000; ++i) {
    const auto value = static_cast<float>(largest * std::pow(i / 2000.0, 3));
    const int position = positionOf(this->format, static_cast<double>(value));
    for (int random = 0; random < 256; ++random) {
      const int expected = std::min((position + random) / 256, this->format.maxCode);
      const auto bits = static_cast<std::uint8_t>(random);
      ASSERT_EQ(TypeParam::fromFloatStochastic(value, bits), expected) << value << " with " << random;
      ASSERT_EQ(TypeParam::fromFloatStochastic(-value, bits), expected | this->format.signBit()) << value;
    }
  }
}

TYPED_TEST(MinifloatTest, StochasticRoundingLeavesValuesAndSpecialsAlone) {
  for (const std::uint8_t random : std::initializer_list<std::uint8_t>{0, 1, 128, 255}) {
    this->forEachFinite(
        [&](std::uint8_t code) { EXPECT_EQ(TypeParam::fromFloatStochastic(TypeParam::toFloat(code), random), code); });
    EXPECT_EQ(TypeParam::fromFloatStochastic(kInfinity, random), this->format.maxCode);
    EXPECT_EQ(TypeParam::fromFloatStochastic(kNan, random), this->format.nanCode);
  }
}

// The table of CUDA's conversions: finite overflow and infinity, with and without saturation.
TEST(E4M3, OverflowsAbove464) {
  EXPECT_EQ(E4m3::fromFloat(464.0f, Overflow::Propagate), 0x7e);
  EXPECT_EQ(E4m3::fromFloat(std::nextafter(464.0f, 500.0f), Overflow::Propagate), 0x7f);
  EXPECT_EQ(E4m3::fromFloat(-1e30f), 0xfe);
  EXPECT_EQ(E4m3::fromFloat(-1e30f, Overflow::Propagate), 0xff);
  EXPECT_EQ(E4m3::fromFloat(kInfinity), 0x7e);
  EXPECT_EQ(E4m3::fromFloat(-kInfinity, Overflow::Propagate), 0xff);
}

TEST(E5M2, OverflowsAt61440) {
  EXPECT_EQ(E5m2::fromFloat(std::nextafter(61440.0f, 0.0f), Overflow::Propagate), 0x7b);
  EXPECT_EQ(E5m2::fromFloat(61440.0f, Overflow::Propagate), 0x7c);
  EXPECT_EQ(E5m2::fromFloat(61440.0f), 0x7b);
  EXPECT_EQ(E5m2::fromFloat(-kInfinity), 0xfb);
  EXPECT_EQ(E5m2::fromFloat(-kInfinity, Overflow::Propagate), 0xfc);
}

TEST(E2M1, HasNeitherInfinityNorNan) {
  EXPECT_EQ(E2m1::fromFloat(kInfinity, Overflow::Propagate), 0x7);
  EXPECT_EQ(E2m1::fromFloat(-1e30f, Overflow::Propagate), 0xf);
  EXPECT_EQ(E2m1::fromFloat(-kNan), 0x7);
}

static_assert(E4m3::toFloat(E4m3::fromFloat(448.0f)) == 448.0f, "usable in constant expressions");
static_assert(E5m2::toFloat(E5m2::fromFloat(-57344.0f)) == -57344.0f);
static_assert(E2m1::toFloat(E2m1::fromFloatStochastic(2.5f, 128)) == 3.0f);

}  // namespace
}  // namespace fuseline
