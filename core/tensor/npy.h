// Tensors as .npy files, NumPy's own format.
// A file is a magic word, the version 1.0, the header's length (u16, little-endian), the header (a Python literal:
// type, order, shape) and the data. Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <filesystem>

namespace fuseline {

/// The dtype that the numbers have in the file: NumPy has no bf16 and no e4m3, which become f32, without any loss.
constexpr DType npyDType(DType dtype) { return dtype == DType::BF16 || dtype == DType::E4M3 ? DType::F32 : dtype; }

/// Writes atomically. tensor: not quantized.
/// Errors: the file cannot be written, or the shape has more extents than a header of version 1.0 has room for.
Result<void> writeNpy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace fuseline
