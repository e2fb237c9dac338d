// Distances between tensors, against values computed by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/numerics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(ErrorOf, GivesMaximumRmsAndAngle) {
  const ErrorNumerics error = errorOf("y", {3.0, 4.5}, {3.0, 4.0}, DType::F32);
  EXPECT_DOUBLE_EQ(error.maxAbsolute, 0.5);
  EXPECT_DOUBLE_EQ(error.rmsRelative, 0.5 / 5.0);
  EXPECT_NEAR(error.cosine, 27.0 / (std::sqrt(29.25) * 5.0), 1e-12);
}

/// There is nothing to be relative to.
TEST(ErrorOf, IsThatOfTheDifferencesWhereZerosAreExpected) {
  const std::vector<double> zeros(100, 0.0);
  EXPECT_DOUBLE_EQ(errorOf("y", std::vector<double>(100, 0.25), zeros, DType::F32).rmsRelative, 0.25);
  EXPECT_EQ(errorOf("y", zeros, zeros, DType::F32).rmsRelative, 0.0);
}

TEST(ErrorOf, CountsUnitsInTheLastPlaceOfTheDtype) {
  // A bf16 unit at 1 is 2^-7: equal, half a unit, one, 1.5, 3, and 1000 of them.
  constexpr double kUnit = 0x1p-7;
  const std::vector<double> expected(6, 1.0);
  const std::vector<double> actual = {
      1.0, 1.0 + kUnit / 2, 1.0 + kUnit, 1.0 + 1.5 * kUnit, 1.0 - 3 * kUnit, 1.0 + 1000 * kUnit};
  const ErrorNumerics error = errorOf("y", actual, expected, DType::BF16);
  EXPECT_EQ(error.ulpHistogram[0], 2);
  EXPECT_EQ(error.ulpHistogram[1], 1);
  EXPECT_EQ(error.ulpHistogram[2], 1);
  EXPECT_EQ(error.ulpHistogram[3], 1);
  EXPECT_EQ(error.ulpHistogram[ErrorNumerics::kUlpBuckets - 1], 1);
}

TEST(ErrorOf, SaysHowManyUnitsMostElementsAreWithin) {
  ErrorNumerics error;
  error.ulpHistogram = {90, 5, 4, 1};
  EXPECT_EQ(error.ulpsOf(0.9), 0.5);
  EXPECT_EQ(error.ulpsOf(0.95), 1.0);
  EXPECT_EQ(error.ulpsOf(0.99), 2.0);
  EXPECT_EQ(error.ulpsOf(1.0), 4.0);
  error.ulpHistogram.back() = 100;
  EXPECT_EQ(error.ulpsOf(0.99), std::numeric_limits<double>::infinity());
}

TEST(ErrorOf, SeesNonFiniteElementsThatDiffer) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(errorOf("y", {kInfinity, 1.0}, {kInfinity, 1.0}, DType::F32).isFinite);
  EXPECT_FALSE(errorOf("y", {kInfinity, 1.0}, {-kInfinity, 1.0}, DType::F32).isFinite);
  EXPECT_FALSE(errorOf("y", {nan, 1.0}, {nan, 1.0}, DType::F32).isFinite) << "both plans are useless";
  EXPECT_FALSE(errorOf("y", {nan, 1.0}, {1.0, 1.0}, DType::F32).isFinite);
  EXPECT_FALSE(errorOf("y", {nan, nan}, {nan, nan}, DType::F32).isFinite) << "nothing is left to compare";
  EXPECT_TRUE(errorOf("y", {}, {}, DType::F32).isFinite);
  EXPECT_FALSE(errorOf("y", {-kInfinity}, {kInfinity}, DType::F32).isFinite);
}

// The rms of the values is 1, the tolerance of bf16 1.6 %, and one element may be off by eight times that of 1 + 1.
TEST(ErrorOf, TakesAShareOfTheTolerance) {
  const std::vector<double> ones(10000, 1.0);
  std::vector<double> all(ones.size(), 1.008);
  EXPECT_NEAR(errorOf("y", all, ones, DType::BF16).toleranceShare, 0.5, 1e-3) << "by the rms";
  std::vector<double> one = ones;
  one[77] = 1.0 + 8 * 0.016 * 2 * 1.5;
  const ErrorNumerics single = errorOf("y", one, ones, DType::BF16);
  EXPECT_NEAR(single.toleranceShare, 1.5, 1e-3) << "by the largest, though the rms is small";
  EXPECT_LT(single.rmsRelative, 0.016);
  EXPECT_FALSE(single.isWithin());
  EXPECT_TRUE(errorOf("y", all, ones, DType::BF16).isWithin());
  EXPECT_FALSE(errorOf("y", all, ones, DType::F32).isWithin());
}

/// Elements of a row of large sums may be off by as much as its terms are, those of other rows may not.
TEST(ErrorOf, MeasuresAnElementByItsRowAndColumn) {
  constexpr std::int64_t kCols = 100;
  std::vector<double> expected(100000, 1.0);
  std::fill_n(expected.begin(), kCols, 10.0);
  const auto shareOf = [&](std::size_t element, double difference, std::int64_t cols) {
    std::vector<double> actual = expected;
    actual[element] += difference;
    return errorOf("y", actual, expected, DType::BF16, toleranceOf(DType::BF16), cols).toleranceShare;
  };
  const double allowed = 8 * 0.016 * (10.0 + 10.0);
  EXPECT_NEAR(shareOf(5, 0.9 * allowed, kCols), 0.9, 1e-3);
  EXPECT_GT(shareOf(5, 0.9 * allowed, 0), 1.5) << "by the rms of all";
  EXPECT_NEAR(shareOf(5005, 1.0, kCols), shareOf(5005, 1.0, 0), 1e-9);
}

TEST(ErrorOf, AllowsOfZerosTheAbsoluteToleranceOnly) {
  EXPECT_NEAR(errorOf("y", {1e-5, -1e-5}, {0.0, 0.0}, DType::BF16).toleranceShare, 1.0, 1e-9);
  EXPECT_EQ(errorOf("y", {0.0}, {0.0}, DType::I64).toleranceShare, 0.0);
  EXPECT_FALSE(errorOf("y", {4.0}, {5.0}, DType::I64).isWithin()) << "integers are exact";
}

TEST(VerdictOf, NamesTheOneThatTakesMost) {
  const ErrorNumerics good = errorOf("good", {1.001}, {1.0}, DType::BF16);
  const ErrorNumerics bad = errorOf("bad", {1.5}, {1.0}, DType::BF16);
  EXPECT_EQ(verdictOf({good, bad, good}).worst, "bad");
  EXPECT_FALSE(verdictOf({good, bad}).isWithin);
  EXPECT_TRUE(verdictOf({good}).isWithin);
  EXPECT_TRUE(verdictOf({}).isWithin);
  const ErrorNumerics notFinite = errorOf("nan", {std::nan("")}, {1.0}, DType::BF16);
  EXPECT_EQ(verdictOf({good, notFinite}).worst, "nan") << "though it takes nothing of the tolerance";
  EXPECT_EQ(verdictOf({good, notFinite}).toleranceShare, std::numeric_limits<double>::infinity());
}

TEST(MagnitudesOf, CountsByBinaryOrder) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const MagnitudeHistogram magnitudes = magnitudesOf({0.0, -0.0, 1.0, -1.5, 2.0, 0.25, nan, 3.99});
  EXPECT_EQ(magnitudes.firstExponent, -2);
  EXPECT_EQ(magnitudes.counts, (std::vector<std::int64_t>{1, 0, 2, 2}));
  EXPECT_EQ(magnitudes.zeros, 2);
  EXPECT_TRUE(magnitudesOf({0.0}).counts.empty());
}

NumericsReport fullReport() {
  const QuantizationLosses losses{.amax = 3.5,
                                  .smallest = 0.25,
                                  .scaleInvMin = 0.5,
                                  .scaleInvMax = 2.0,
                                  .underflowShare = 0.125,
                                  .saturationShare = 0.0625,
                                  .meanSquaredError = 1e-3,
                                  .signalToNoise = std::numeric_limits<double>::infinity()};
  return {.recipe = "DelayedScaling",
          .copies = {{.name = "fc.input@rowwise",
                      .owner = "fc",
                      .format = "e4m3 (per_tensor)",
                      .losses = losses,
                      .magnitudes = magnitudesOf({0.0, 0.25, 3.5}),
                      .requantized = {{.recipe = "NVFP4BlockScaling",
                                       .format = "e2m1 (nv_1x16)",
                                       .element = ElementFormat::E2M1,
                                       .elements = 3,
                                       .losses = losses}}}},
          .frozenScales = {{.name = "fc.input", .owner = "fc", .scale = 448.0F, .steps = 12}},
          .errors = {errorOf("y", {1.0, 2.0}, {1.0, 2.5}, DType::BF16)},
          .fusionErrors = {errorOf("y", {1.0}, {1.0}, DType::BF16)},
          .firstNonFinite = NonFiniteOrigin{.step = "fc", .tensor = "y", .phase = "forward"}};
}

TEST(NumericsReport, ComesBackFromJson) {
  const Json json = toJson(fullReport());
  const Result<NumericsReport> back = numericsFromJson(json);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(toJson(*back), json);
  EXPECT_EQ(back->copies.front().magnitudes, fullReport().copies.front().magnitudes);
  EXPECT_EQ(back->copies.front().requantized.front().element, ElementFormat::E2M1);
  EXPECT_EQ(back->frozenScales.front().scale, 448.0F);
}

TEST(NumericsReport, KeepsScalesThatOverflowed) {
  NumericsReport report = fullReport();
  report.copies.front().losses.scaleInvMax = std::numeric_limits<double>::infinity();
  const Result<NumericsReport> back = numericsFromJson(toJson(report));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->copies.front().losses.scaleInvMin, 0.5);
  EXPECT_EQ(back->copies.front().losses.scaleInvMax, std::numeric_limits<double>::infinity());
}

TEST(NumericsReport, RefusesWhatAreNoScalesAndNoCounts) {
  const auto problem = [](const char* pointer, const Json& value) {
    Json json = toJson(fullReport());
    json[Json::json_pointer(pointer)] = value;
    const Result<NumericsReport> back = numericsFromJson(json);
    return back ? std::string() : back.error().message;
  };
  EXPECT_NE(problem("/quantizedTensors/0/scaleInv", {1.0}), "");
  EXPECT_NE(problem("/quantizedTensors/0/scaleInv", {1.0, "2"}), "");
  EXPECT_NE(problem("/quantizedTensors/0/magnitudes/counts/0", 1e300), "");
  EXPECT_NE(problem("/errors/0/ulpHistogram/0", 0.5), "");
}

/// Each field, taken out or made an object, is named.
TEST(NumericsReport, RefusesWhatIsBroken) {
  const Json whole = toJson(fullReport());
  for (const auto& [key, value] : whole.items()) {
    Json without = whole;
    without.erase(key);
    Json wrong = whole;
    wrong[key] = {{"not", "this"}};
    for (const Json& broken : {without, wrong}) {
      const Result<NumericsReport> report = numericsFromJson(broken);
      ASSERT_FALSE(report) << key;
      EXPECT_TRUE(report.error().message.starts_with("/" + key)) << report.error().message;
    }
  }
}

}  // namespace
}  // namespace fuseline
