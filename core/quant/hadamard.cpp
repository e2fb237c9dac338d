// Rows in blocks of 16; one rounding follows the sums in double.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/hadamard.h"

#include <algorithm>

namespace fuseline {

namespace {

/// Applies `change` to every 16 values and rounds the result to dtype.
template <class Change>
Matrix mapBlocks(const Matrix& matrix, DType dtype, Change change) {
  std::vector<double> values(matrix.values.begin(), matrix.values.end());
  for (std::size_t begin = 0; begin + kHadamardSize <= values.size(); begin += kHadamardSize) {
    double block[kHadamardSize];
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
    std::copy_n(first, kHadamardSize, block);
    change(block);
    std::ranges::copy(block, first);
  }
  return matrixOf(Tensor::fromDoubles({dtype, {matrix.rows, matrix.cols}}, values));
}

}  // namespace

Matrix randomHadamard(const Matrix& x) {
  return mapBlocks(x, DType::BF16, [](auto& block) { randomHadamard(block); });
}

Matrix inverseRandomHadamard(const Matrix& y) {
  return mapBlocks(y, DType::F32, [](auto& block) { inverseRandomHadamard(block); });
}

}  // namespace fuseline
