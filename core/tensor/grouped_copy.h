// Quantized tensors with rows in groups: each group is quantized as a separate tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor_spec.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fuseline {

/// The quantized tensor of one group within the memory of all.
struct GroupCopy {
  std::int64_t firstRow = 0;
  TensorSpec spec;          // [rows of the group, K]
  std::int64_t offset = 0;  // in bytes
};

/// The quantized tensors of all groups, from the number of rows of each. Without groups the whole tensor.
std::vector<GroupCopy> groupCopies(const TensorSpec& copy, std::span<const std::int64_t> sizes);
/// The same with the sizes in the quantized tensor's memory.
std::vector<GroupCopy> groupCopies(const TensorSpec& copy, const std::byte* memory);

/// Sizes precede the quantized tensors. Does nothing without groups.
void writeGroupSizes(const TensorSpec& copy, std::span<const std::int64_t> sizes, std::byte* memory);

/// Maximum size in bytes, over all group sizes that are multiples of the scaling's requirement in a GEMM.
std::int64_t groupedCopyBytes(const TensorSpec& copy);

}  // namespace fuseline
