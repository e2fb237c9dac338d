// Random tensors are reproducible and rounded once.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/random_tensor.h"

#include "core/numerics/random.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

// Larger than one strip, so that several threads take part.
constexpr std::int64_t kElements = 100'003;

TEST(RandomTensor, HasTheValuesOfItsStreamInOrder) {
  const Tensor tensor = randomNormal({.dtype = DType::F32, .shape = {kElements}}, 1234, "x");
  const RandomStream stream(1234, "x");
  const std::vector<double> values = tensor.toDoubles();
  for (std::int64_t i = 0; i < kElements; ++i) {
    const auto expected = static_cast<float>(stream.normal(static_cast<std::uint64_t>(i)));
    ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<double>(expected)) << i;
  }
}

TEST(RandomTensor, IsTheSameEachTimeAndDiffersByName) {
  const TensorSpec spec{.dtype = DType::BF16, .shape = {7, 11}};
  EXPECT_EQ(randomNormal(spec, 1, "a").data, randomNormal(spec, 1, "a").data);
  EXPECT_NE(randomNormal(spec, 1, "a").data, randomNormal(spec, 1, "b").data);
}

TEST(RandomTensor, UniformStaysWithinItsBoundAndReachesNearIt) {
  const std::vector<double> values = randomUniform({.shape = {kElements}}, 0.25, 3, "w").toDoubles();
  const auto [least, greatest] = std::ranges::minmax(values);
  EXPECT_GE(least, -0.25);
  EXPECT_LE(greatest, 0.25);
  EXPECT_LT(least, -0.2499);
  EXPECT_GT(greatest, 0.2499);
}

TEST(RandomTensor, MayBeEmpty) { EXPECT_TRUE(randomNormal({.shape = {0, 5}}, 1, "x").data.empty()); }

TEST(FilledTensor, HasTheValueEverywhere) {
  const std::vector<double> values = filled({.dtype = DType::F16, .shape = {kElements}}, 1.0).toDoubles();
  EXPECT_TRUE(std::ranges::all_of(values, [](double value) { return value == 1.0; }));
}

}  // namespace
}  // namespace fuseline
