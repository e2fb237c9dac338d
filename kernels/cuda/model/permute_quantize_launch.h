// Launches that quantize the rows of experts while they are copied. Plain C++: the kernels are in
// permute_quantize_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>
#include <span>

namespace fuseline::cuda {

/// The rows of one expert: row i is row slotOfRow[i] / terms of x, or 0 where the slot is negative.
struct PermutedQuantization {
  const void* x = nullptr;
  device::Element element = device::Element::F32;
  const std::int32_t* slotOfRow = nullptr;
  std::int32_t terms = 1;
  std::int64_t rows = 0;
  std::int64_t cols = 0;  // a multiple of the vector width
  void* y = nullptr;      // null: only the quantized rows are wanted
  device::CopyPair copies;
};
/// experts: all with the same element type. kind: of all quantized tensors.
void launchPermutedQuantize(std::span<const PermutedQuantization> experts, device::CopyKind kind, Stream stream);

}  // namespace fuseline::cuda
