// H / 4 is orthogonal and symmetric, so the same butterflies serve both directions.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/hadamard.h"

#include <algorithm>
#include <array>

namespace fuseline {

namespace {

using Block = std::array<double, kHadamardSize>;

constexpr Block kSigns = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

/// block * H / 4. Sums in double are exact but for extreme ranges, so that one rounding follows.
void transform(Block& block) {
  for (std::size_t half = 1; half < block.size(); half *= 2)
    for (std::size_t i = 0; i < block.size(); ++i)
      if ((i & half) == 0) {
        const double a = block[i];
        const double b = block[i + half];
        block[i] = a + b;
        block[i + half] = a - b;
      }
  for (double& value : block) value /= 4.0;
}

void applySigns(Block& block) {
  for (std::size_t i = 0; i < block.size(); ++i) block[i] *= kSigns[i];
}

/// Applies `change` to every 16 values and rounds the result to dtype.
template <class Change>
Matrix mapBlocks(const Matrix& matrix, DType dtype, Change change) {
  std::vector<double> values(matrix.values.begin(), matrix.values.end());
  for (std::size_t begin = 0; begin + kHadamardSize <= values.size(); begin += kHadamardSize) {
    Block block;
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin), kHadamardSize, block.begin());
    change(block);
    std::copy(block.begin(), block.end(), values.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  return matrixOf(Tensor::fromDoubles({dtype, {matrix.rows, matrix.cols}}, values));
}

}  // namespace

Matrix randomHadamard(const Matrix& x) {
  return mapBlocks(x, DType::BF16, [](Block& block) {
    applySigns(block);
    transform(block);
  });
}

Matrix inverseRandomHadamard(const Matrix& y) {
  return mapBlocks(y, DType::F32, [](Block& block) {
    transform(block);
    applySigns(block);
  });
}

}  // namespace fuseline
