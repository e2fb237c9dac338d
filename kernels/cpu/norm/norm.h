// RMSNorm, LayerNorm and L2Normalization over whole tensors: threads, dtypes that differ, parameter gradients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "kernels/cpu/elementwise/row_sink.h"
#include "kernels/cpu/model/row_numbers.h"
#include "kernels/cpu/norm/norm_functions.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cpu {

/// A norm step without its pointers. xDType: of x (or the normalized sum), dx and extra; yDType: of y and dy.
struct NormProblem {
  NormKind kind = NormKind::Rms;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  // From one row to the next, in elements, where they are columns of a wider tensor; 0: rows follow each other.
  std::int64_t rowOfX = 0;
  std::int64_t rowOfDx = 0;  // not with a sink
  DType xDType = DType::F32;
  DType yDType = DType::F32;
  DType parameterDType = DType::F32;
  float eps = 1e-5F;
  bool isGammaZeroCentred = false;
  int threads = 1;

  std::int64_t strideOfX() const { return rowOfX > 0 ? rowOfX : cols; }
  std::int64_t strideOfDx() const { return rowOfDx > 0 ? rowOfDx : cols; }
};

/// A residual that is added first: sum = a + b, rounded to xDType, is normalized.
struct NormAddend {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  DType aDType = DType::F32;
  DType bDType = DType::F32;
  std::byte* sum = nullptr;  // null: only the norm is requested
};

/// Rows of xDType that are looked up.
struct NormLookUp {
  const std::byte* table = nullptr;
  const std::int64_t* ids = nullptr;
  RowNumbers rows;
  std::byte* copy = nullptr;  // of the rows; null: only the norm is requested
};

struct NormForwardPointers {
  const std::byte* x = nullptr;
  const std::byte* gamma = nullptr;  // null for L2
  const std::byte* beta = nullptr;
  std::byte* y = nullptr;
  float* mean = nullptr;  // null: not requested
  float* rstd = nullptr;
  const RowSink* sink = nullptr;  // receives the rows of y, instead of y
};

struct NormBackwardPointers {
  const std::byte* x = nullptr;
  const std::byte* dy = nullptr;
  const std::byte* extra = nullptr;  // null: nothing is added
  const std::byte* gamma = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  std::byte* dx = nullptr;      // null: not requested
  std::byte* dgamma = nullptr;  // null: not requested
  std::byte* dbeta = nullptr;
  const RowSink* sink = nullptr;  // receives the rows of dx, instead of dx
};

std::size_t normForwardWorkspaceBytes(const NormProblem& problem);
void normForward(const NormProblem& problem, const NormForwardPointers& pointers, std::byte* workspace);
/// The same for x = a + b; pointers.x is not read.
void addNormForward(const NormProblem& problem, const NormAddend& addend, const NormForwardPointers& pointers,
                    std::byte* workspace);

/// The same for rows of a table.
void lookUpNormForward(const NormProblem& problem, const NormLookUp& lookUp, const NormForwardPointers& pointers,
                       std::byte* workspace);

/// Parameter gradients are sums of float32 partial sums per thread and block of rows, added in a fixed order: the
/// same for the same number of threads.
std::size_t normBackwardWorkspaceBytes(const NormProblem& problem);
void normBackward(const NormProblem& problem, const NormBackwardPointers& pointers, std::byte* workspace);

}  // namespace fuseline::cpu
