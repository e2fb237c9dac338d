// Swaps the factors of a row-major GEMM.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemm_layout.h"

namespace fuseline::cuda {

namespace {

/// A row-major [rows, cols] matrix in column-major terms.
ColumnMajor transposeOf(std::int64_t rows, std::int64_t cols) {
  return {.rows = cols, .cols = rows, .leadingDimension = cols};
}

ColumnMajor stored(std::int64_t rows, std::int64_t cols, Storage2d storage) {
  return storage == Storage2d::AsRead ? transposeOf(rows, cols) : transposeOf(cols, rows);
}

}  // namespace

CublasLayout layoutOf(const GemmProblem& problem) {
  return {.a = stored(problem.k, problem.n, problem.b),
          .b = stored(problem.m, problem.k, problem.a),
          .d = transposeOf(problem.m, problem.n),
          .isATransposed = problem.b == Storage2d::Transposed,
          .isBTransposed = problem.a == Storage2d::Transposed};
}

}  // namespace fuseline::cuda
