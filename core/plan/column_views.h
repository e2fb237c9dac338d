// Split and Concat without copies: parts that are columns of the whole, where all their kernels take a row stride.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fuseline {

/// Rows of columns of this shape begin at multiples of this many bytes.
std::int64_t columnAlignment(const TensorSpec& columns);

/// Turns the parts of Split, Concat and their gradients into views of the whole where memory allows: all kernels that
/// read or write a part accept its row stride, and no other step writes the whole meanwhile. A whole that joins all
/// columns of one tensor in their order is that tensor; rotary embeddings between them work in place. Steps without
/// remaining copies become views.
void showColumns(const Graph& graph, Plan& plan, std::vector<int>& viewOf, bool joinsInPlace);

/// Where a tensor begins in the memory of the one that it shows.
std::int64_t firstByteOf(const PlanTensor& tensor);
/// Bytes from the first element of a column view to its last one; 0: the tensor is contiguous.
std::size_t columnBytes(const PlanTensor& tensor);
/// Copies between the memory of a column view, beginning with its first element, and a contiguous tensor.
void gatherColumns(const PlanTensor& tensor, const std::byte* columns, std::span<std::byte> contiguous);
void scatterColumns(const PlanTensor& tensor, std::span<const std::byte> contiguous, std::byte* columns);

}  // namespace fuseline
