// Copies and sums of rows that are named by number, for MoEPermute and MoEUnpermute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fuseline::cpu {

/// Rows of one width: to[i] from rows of `from`. A number of -1 stands for no row.
struct MovedRows {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t width = 0;
  DType dtype = DType::F32;
  int threads = 1;
  std::int64_t fromStride = 0;  // elements from one row of `from` to the next; 0: width
};

/// The workspace of sumRows() and scaleRows().
std::size_t movedRowsBytes(std::int64_t width, int threads);

/// to[i] = from[sources[i] / divisor], or 0.
void copyRows(const MovedRows& rows, std::span<const std::int64_t> sources, std::int64_t divisor);
/// to[i] = factors[sources[i]] from[sources[i] / divisor], rounded once, or 0.
void scaleRows(const MovedRows& rows, std::span<const std::int64_t> sources, std::int64_t divisor,
               std::span<const float> factors, std::byte* workspace);
/// to[i] = the sum over j of factors[i, j] from[sources[i, j]], in float32, in the order of j, plus row i of each
/// addend, rounded once. factors: empty where all are 1. An addend may be the result's memory.
void sumRows(const MovedRows& rows, std::span<const std::int64_t> sources, std::int64_t terms,
             std::span<const float> factors, std::byte* workspace, std::span<const std::byte* const> addends = {});

/// All numbers of an operand; empty if it is absent.
std::vector<float> numbersOf(const Binding& binding, Pointers pointers);
std::span<const std::int64_t> integersOf(const Binding& binding, Pointers pointers);

}  // namespace fuseline::cpu
