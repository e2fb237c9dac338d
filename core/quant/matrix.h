// A tensor as a matrix of float32, on which quantizers work.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

#include <cstdint>
#include <vector>

namespace fuseline {

/// Row-major.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<float> values;

  float& at(std::int64_t row, std::int64_t col) { return values[static_cast<std::size_t>(row * cols + col)]; }
  float at(std::int64_t row, std::int64_t col) const { return values[static_cast<std::size_t>(row * cols + col)]; }
};

/// All leading dimensions become one. Exact: float32 holds every value of the wider dtypes.
Matrix matrixOf(const Tensor& tensor);
/// Rounds every value once. The matrix has the spec's number of elements.
Tensor tensorOf(const Matrix& matrix, TensorSpec spec);

Matrix transposed(const Matrix& matrix);

}  // namespace fuseline
