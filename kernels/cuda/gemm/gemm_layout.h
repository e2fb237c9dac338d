// A row-major GEMM in the terms of cuBLASLt, whose matrices are column-major.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"

namespace fuseline::cuda {

/// A column-major matrix as stored.
struct ColumnMajor {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t leadingDimension = 0;
  std::int64_t count = 1;   // such matrices, in a batch
  std::int64_t stride = 0;  // from one to the next, in elements

  bool operator==(const ColumnMajor&) const = default;
};

/// D = op(A) op(B) + C, all column-major: D is the transpose of the row-major c, A is b and B is a.
struct CublasLayout {
  ColumnMajor a;
  ColumnMajor b;
  ColumnMajor d;  // and C
  bool isATransposed = false;
  bool isBTransposed = false;

  bool operator==(const CublasLayout&) const = default;
};

/// A matrix that is stored row by row is its transpose, column by column; so c' = b' a' needs no copy.
CublasLayout layoutOf(const GemmProblem& problem);

}  // namespace fuseline::cuda
