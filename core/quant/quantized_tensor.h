// QuantizedTensor: low-precision encoded values with the scales that dequantize them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/element_format.h"
#include "core/tensor/scaling.h"
#include "core/tensor/tensor.h"

#include <optional>
#include <vector>

namespace fuseline {

/// Compact: one scale per block, row-major over the blocks. Gemm: as cuBLASLt reads them, see scale_layout.h.
enum class ScaleLayout : std::uint8_t { Compact, Gemm };

/// A tensor quantized for GEMMs that contract one of its directions.
struct QuantizedCopy {
  /// Encoded values, u8 [rows, cols] in the stored orientation; for E2M1 [rows, ceil(cols / 2)], two values per byte.
  Tensor data;
  /// Dequantization factors: f32, or u8 encodings of E8M0 and E4M3.
  Tensor scaleInv;
  /// Nv scalings: the largest |value| of the tensor, from which the scale of the tensor follows.
  std::optional<float> amax;
  /// NvRow1x16: that of each stored row instead.
  std::vector<float> rowAmaxes = {};

  /// The amax of the tensor, or of a stored row.
  float amaxOf(std::int64_t row) const;
  std::int64_t bytes() const;
};

/// Description of a quantized tensor without its data.
struct QuantizedSpec {
  /// dtype and shape of the tensor that was quantized.
  TensorSpec nominal;
  ElementFormat format = ElementFormat::E4M3;
  Scaling scaling = Scaling::PerTensor;
  ScaleLayout layout = ScaleLayout::Compact;
  /// The columnwise tensor was quantized from the random Hadamard transform of the tensor.
  bool isColumnwiseTransformed = false;
  bool operator==(const QuantizedSpec&) const = default;
};

struct QuantizedTensor {
  QuantizedSpec spec;
  std::optional<QuantizedCopy> rowwise;
  std::optional<QuantizedCopy> columnwise;

  const std::optional<QuantizedCopy>& copy(Usage direction) const;
  std::optional<QuantizedCopy>& copy(Usage direction);
};

/// The specs of data and scaleInv in one direction.
TensorSpec codesSpec(const QuantizedSpec& spec, Usage direction);
TensorSpec scalesSpec(const QuantizedSpec& spec, Usage direction);

}  // namespace fuseline
