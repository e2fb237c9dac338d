// Row loops of RMSNorm, LayerNorm and L2Normalization, forward and backward, vectorized for every instruction set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "kernels/common/norm_kind.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cpu {

/// y = gamma * (x - mean) * rstd + beta per row; RMSNorm has no mean and no beta, L2Normalization no gamma either, and
/// sums where the others take means.
/// x, y: [rows, cols] of one dtype; rowOfX: from one row of x to the next, in elements; 0: as in y. gamma, beta: [cols]
/// float32, with the 1 of a zero-centered gamma already added; not read where a norm has none. mean, rstd: [rows]
/// float32, may be null. All sums in float32, two passes over a row in the cache.
struct NormForwardRows {
  const void* x = nullptr;
  void* y = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float* mean = nullptr;
  float* rstd = nullptr;
  std::int64_t cols = 0;
  std::int64_t rowOfX = 0;
  float eps = 0.0F;
};

/// With xh = (x - mean) rstd and q = gamma dy: dx = rstd (q - mean(q xh) xh - mean(q)) + extra; RMSNorm lacks
/// mean(q); L2Normalization too, and has the sum of q xh in place of the mean, and q = dy. dgamma += dy xh; dbeta +=
/// dy. dx, extra, dgamma, dbeta may be null. x, dy, dx, extra: one dtype.
struct NormBackwardRows {
  const void* x = nullptr;
  const void* dy = nullptr;
  const void* extra = nullptr;
  void* dx = nullptr;
  const float* gamma = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  float* dgamma = nullptr;  // [cols], added to
  float* dbeta = nullptr;   // [cols], added to
  std::int64_t cols = 0;
  std::int64_t rowOfX = 0;
  std::int64_t rowOfDx = 0;
};

using NormForwardFunction = void (*)(const NormForwardRows&, std::int64_t firstRow, std::int64_t lastRow);
using NormBackwardFunction = void (*)(const NormBackwardRows&, std::int64_t firstRow, std::int64_t lastRow);

/// sum[i] = a[i] + b[i], rounded once; all of one dtype.
using AddFunction = void (*)(const void* a, const void* b, void* sum, std::size_t count);

AddFunction addFunction(DType dtype);
NormForwardFunction normForwardFunction(NormKind kind, DType dtype);
NormBackwardFunction normBackwardFunction(NormKind kind, DType dtype);

}  // namespace fuseline::cpu
