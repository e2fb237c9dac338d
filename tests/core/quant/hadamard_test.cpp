// The random Hadamard transform against its matrix, written out from its definition.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/hadamard.h"

#include <bit>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

const std::string kSigns = "+++-+------+-+--";

/// Sylvester's matrix has (-1)^(common bits of row and column).
double entry(std::size_t row, std::size_t col) {
  const double sign = std::popcount(row & col) % 2 == 0 ? 1.0 : -1.0;
  return (kSigns[row] == '+' ? sign : -sign) / 4.0;
}

Matrix randomMatrix(std::int64_t rows, std::int64_t cols) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(rows * cols));
  for (double& value : values) value = normal(random);
  return matrixOf(Tensor::fromDoubles({DType::BF16, {rows, cols}}, values));
}

TEST(RandomHadamard, IsTheProductWithItsMatrixRoundedToBf16) {
  const Matrix x = randomMatrix(5, 48);
  std::vector<double> expected;
  for (std::int64_t row = 0; row < x.rows; ++row)
    for (std::int64_t col = 0; col < x.cols; ++col) {
      double sum = 0;
      for (std::size_t k = 0; k < 16; ++k)
        sum += static_cast<double>(x.at(row, col / 16 * 16 + static_cast<std::int64_t>(k))) *
               entry(k, static_cast<std::size_t>(col % 16));
      expected.push_back(sum);
    }
  const Tensor rounded = Tensor::fromDoubles({DType::BF16, {x.rows, x.cols}}, expected);
  EXPECT_EQ(randomHadamard(x).values, matrixOf(rounded).values);
}

// One outlier of 16 becomes 16 values of a quarter of its size: this is the transform's purpose.
TEST(RandomHadamard, SpreadsAnOutlier) {
  Matrix x{.rows = 1, .cols = 16, .values = std::vector<float>(16)};
  x.at(0, 3) = 64.0f;
  for (const float value : randomHadamard(x).values) EXPECT_EQ(std::abs(value), 16.0f);
}

TEST(RandomHadamard, IsUndoneByItsInverse) {
  Matrix x = randomMatrix(4, 32);
  for (float& value : x.values) value = std::round(value * 4.0f);  // sums of 16 small whole numbers are exact in bf16
  EXPECT_EQ(inverseRandomHadamard(randomHadamard(x)).values, x.values);
}

}  // namespace
}  // namespace fuseline
