// Statistics of tensors, against figures computed by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/tensor_statistics.h"

#include "core/support/json_fields.h"
#include "core/tensor/tensor.h"

#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

TensorStatistics statisticsOf(const std::vector<double>& values, DType dtype = DType::F32) {
  const Tensor tensor = Tensor::fromDoubles({dtype, {static_cast<std::int64_t>(values.size())}}, values);
  return fuseline::statisticsOf(dtype, tensor.data);
}

/// Mean 2; deviations -4, -2, 0, 1, 5: squares 46, over 4.
TEST(TensorStatistics, AreThoseOfTheNumbers) {
  const TensorStatistics statistics = statisticsOf({-2.0, 0.0, 2.0, 3.0, 7.0});
  EXPECT_EQ(statistics.elements, 5);
  EXPECT_EQ(statistics.zeros, 1);
  EXPECT_EQ(statistics.min, -2.0);
  EXPECT_EQ(statistics.max, 7.0);
  EXPECT_DOUBLE_EQ(statistics.mean, 2.0);
  EXPECT_DOUBLE_EQ(statistics.std, std::sqrt(46.0 / 4.0));
  EXPECT_DOUBLE_EQ(statistics.l1, 14.0);
  EXPECT_DOUBLE_EQ(statistics.l2, std::sqrt(66.0));
  EXPECT_EQ(statistics.largestAt, 4);
}

TEST(TensorStatistics, CountWhatIsNotFiniteAndLeaveItOut) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const TensorStatistics statistics =
      statisticsOf({std::nan(""), 1.0, kInfinity, 3.0, -kInfinity, std::nan("")}, DType::BF16);
  EXPECT_EQ(statistics.nans, 2);
  EXPECT_EQ(statistics.infinities, 2);
  EXPECT_EQ(statistics.finite(), 2);
  EXPECT_EQ(statistics.min, 1.0);
  EXPECT_EQ(statistics.max, 3.0);
  EXPECT_DOUBLE_EQ(statistics.mean, 2.0);
  EXPECT_DOUBLE_EQ(statistics.std, std::sqrt(2.0));
}

TEST(TensorStatistics, OfNothingAreNotNumbers) {
  const TensorStatistics statistics = statisticsOf({std::nan("")});
  EXPECT_TRUE(std::isnan(statistics.min));
  EXPECT_TRUE(std::isnan(statistics.mean));
  EXPECT_TRUE(std::isnan(statisticsOf({1.0}).std)) << "one element has no spread";
  EXPECT_TRUE(statistics.magnitudes.counts.empty());
  EXPECT_EQ(statistics.largestAt, -1);
}

/// 0.5, 0.75 and 1 to 1.5 in one order of magnitude each; 8 three orders further.
TEST(TensorStatistics, CountMagnitudes) {
  const MagnitudeHistogram magnitudes = statisticsOf({0.5, -0.75, 1.0, 1.5, -8.0, 0.0}).magnitudes;
  EXPECT_EQ(magnitudes.firstExponent, -1);
  EXPECT_EQ(magnitudes.counts, (std::vector<std::int64_t>{2, 2, 0, 0, 1}));
  EXPECT_EQ(magnitudes.zeros, 1);
}

/// Blocks are merged: a large common part must not eat the spread.
TEST(TensorStatistics, OfManyBlocksAreThoseOfAll) {
  std::vector<double> values;
  for (int i = 0; i < 20'000; ++i) values.push_back(1000.0 + (i % 2 == 0 ? 1.0 : -1.0));
  const TensorStatistics statistics = statisticsOf(values);
  EXPECT_DOUBLE_EQ(statistics.mean, 1000.0);
  EXPECT_NEAR(statistics.std, std::sqrt(20'000.0 / 19'999.0), 1e-12);
  EXPECT_EQ(statistics.elements, 20'000);
  EXPECT_EQ(statistics.largestAt, 0) << "1001, the first of many";
}

TEST(TensorSummary, IsReadBackFromJson) {
  const TensorSummary summary{.name = "act:y",
                              .spec = {DType::E4M3, {2, 3}},
                              .statistics = statisticsOf({1.0, -2.0, 0.0, 4.0, std::nan(""), 0.5})};
  const Json json = toJson(summary);
  JsonFields fields(json, "");
  const TensorSummary read = tensorSummaryIn(fields);
  ASSERT_FALSE(fields.error()) << fields.error()->message;
  EXPECT_EQ(read.name, summary.name);
  EXPECT_EQ(read.spec, summary.spec);
  EXPECT_EQ(toJson(read), json);
}

TEST(TensorSummary, NullIsNotANumber) {
  const Json json = toJson(TensorSummary{.name = "x", .spec = {}, .statistics = statisticsOf({})});
  EXPECT_TRUE(json["statistics"]["min"].is_null());
  JsonFields fields(json, "");
  EXPECT_TRUE(std::isnan(tensorSummaryIn(fields).statistics.min));
  EXPECT_FALSE(fields.error());
}

TEST(TensorSummary, RefusesADtypeThatThereIsNot) {
  Json json = toJson(TensorSummary{.name = "x", .spec = {}, .statistics = {}});
  json["dtype"] = "f8";
  JsonFields fields(json, "");
  tensorSummaryIn(fields);
  ASSERT_TRUE(fields.error());
  EXPECT_NE(fields.error()->message.find("f8"), std::string::npos);
}

}  // namespace
}  // namespace fuseline
