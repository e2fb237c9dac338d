// Copies of tensors whose rows are in groups: each group is quantized as a tensor of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor_spec.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fuseline {

/// The copy of one group in the memory of all.
struct GroupCopy {
  std::int64_t firstRow = 0;
  TensorSpec spec;          // [rows of the group, K]
  std::int64_t offset = 0;  // in bytes
};

/// The copies of all groups, by the rows that each has. Without groups the copy itself.
std::vector<GroupCopy> groupCopies(const TensorSpec& copy, std::span<const std::int64_t> sizes);
/// The same by the sizes in the copy's memory.
std::vector<GroupCopy> groupCopies(const TensorSpec& copy, const std::byte* memory);

/// Sizes stand in front of the copies. Does nothing without groups.
void writeGroupSizes(const TensorSpec& copy, std::span<const std::int64_t> sizes, std::byte* memory);

/// What the memory holds at most, for all sizes that are multiples of what the scaling needs in a GEMM.
std::int64_t groupedCopyBytes(const TensorSpec& copy);

}  // namespace fuseline
