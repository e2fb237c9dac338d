// Vectorized loops over the values of blocks: amaxes, factors, and the transposition of encoded values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cpu {

/// The largest magnitude of n elements of the function's dtype. NaN is ignored.
using AmaxFunction = float (*)(const void* values, std::size_t n);

/// amaxes[i] = max(amaxes[i], |values[i]|) for i < n. NaN is ignored.
using RaiseFunction = void (*)(float* amaxes, const void* values, std::size_t n);

/// amaxes[b] = max(amaxes[b], the largest magnitude of block b), for blocks of `width` of the n values. The last may be
/// shorter.
using RaiseBlocksFunction = void (*)(float* amaxes, const void* values, std::size_t width, std::size_t n);

/// For the best instruction set of this machine. dtype: a floating-point one.
AmaxFunction amaxFunction(DType dtype);
RaiseFunction raiseFunction(DType dtype);
RaiseBlocksFunction raiseBlocksFunction(DType dtype);

struct BlockFunctions {
  /// values[i] *= factor
  void (*scale)(float* values, float factor, std::size_t n);
  /// out[col * outStride + row] = in[row * inStride + col] for a square of kTransposedSide bytes a side.
  void (*transposeSquare)(const std::uint8_t* in, std::size_t inStride, std::uint8_t* out, std::size_t outStride);
};

constexpr std::size_t kTransposedSide = 64;

const BlockFunctions& blockFunctions();

}  // namespace fuseline::cpu
