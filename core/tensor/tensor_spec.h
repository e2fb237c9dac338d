// TensorSpec: dtype and shape without data. Inference, fusion and planning see nothing else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "core/tensor/quantized_form.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Extents, outermost first; the last dimension is contiguous. An empty shape is a scalar.
using Shape = std::vector<std::int64_t>;

/// Number of elements; 1 for a scalar.
std::int64_t numElements(const Shape& shape);

/// "[512, 1024]".
std::string toString(const Shape& shape);

struct TensorSpec {
  DType dtype = DType::F32;
  Shape shape;
  /// Set: the memory holds a tensor of that dtype and shape in this quantized form (core/tensor/scaling.h).
  std::optional<QuantizedForm> quantized = std::nullopt;

  std::int64_t numElements() const { return fuseline::numElements(shape); }
  std::int64_t bytes() const;
  /// The last extent; 1 for a scalar.
  std::int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
  /// The product of all leading extents; 1 for scalars and vectors. Well defined for empty tensors.
  std::int64_t rows() const;

  bool operator==(const TensorSpec&) const = default;
};

/// "[512, 1024] bf16", "[512, 1024] bf16 as e4m3 (mx_1x32, rowwise)".
std::string toString(const TensorSpec& spec);

}  // namespace fuseline
