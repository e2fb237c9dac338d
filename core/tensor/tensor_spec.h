// TensorSpec: dtype and shape without data. Inference, fusion and planning see nothing else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"

#include <cstdint>
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

  std::int64_t numElements() const { return fuseline::numElements(shape); }
  std::int64_t bytes() const { return numElements() * sizeBytes(dtype); }
  /// The last extent; 1 for a scalar.
  std::int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
  /// The product of all leading extents; 1 for scalars and vectors. Well defined for empty tensors.
  std::int64_t rows() const;

  bool operator==(const TensorSpec&) const = default;
};

/// "[512, 1024] bf16".
std::string toString(const TensorSpec& spec);

}  // namespace fuseline
