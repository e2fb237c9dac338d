// Between tensors and matrices of float32.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/matrix.h"

namespace fuseline {

Matrix matrixOf(const Tensor& tensor) {
  const std::vector<double> values = tensor.toDoubles();
  Matrix matrix{.rows = tensor.spec.rows(), .cols = tensor.spec.cols(), .values = std::vector<float>(values.size())};
  for (std::size_t i = 0; i < values.size(); ++i) matrix.values[i] = static_cast<float>(values[i]);
  return matrix;
}

Tensor tensorOf(const Matrix& matrix, TensorSpec spec) {
  return Tensor::fromDoubles(std::move(spec), std::vector<double>(matrix.values.begin(), matrix.values.end()));
}

Matrix transposed(const Matrix& matrix) {
  Matrix result{.rows = matrix.cols, .cols = matrix.rows, .values = std::vector<float>(matrix.values.size())};
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (std::int64_t col = 0; col < matrix.cols; ++col) result.at(col, row) = matrix.at(row, col);
  return result;
}

}  // namespace fuseline
