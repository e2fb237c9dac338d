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

/// row: from one stored row to the next; 0: they follow each other.
ColumnMajor inBatch(ColumnMajor matrix, std::int64_t row, std::int64_t count, std::int64_t stride) {
  if (row > 0) matrix.leadingDimension = row;
  matrix.count = count;
  matrix.stride = stride;
  return matrix;
}

}  // namespace

CublasLayout layoutOf(const GemmProblem& problem) {
  const GemmBatch& batch = problem.batch;
  return {.a = inBatch(stored(problem.k, problem.n, problem.b), batch.bRow, batch.count, batch.bStride),
          .b = inBatch(stored(problem.m, problem.k, problem.a), batch.aRow, batch.count, batch.aStride),
          .d = inBatch(transposeOf(problem.m, problem.n), batch.cRow, batch.count, batch.cStride),
          .isATransposed = problem.b == Storage2d::Transposed,
          .isBTransposed = problem.a == Storage2d::Transposed};
}

}  // namespace fuseline::cuda
