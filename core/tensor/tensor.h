// Tensor: a spec and its bytes in host memory, row-major.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor_spec.h"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

struct Tensor {
  TensorSpec spec;
  std::vector<std::byte> data;  // spec.bytes() long

  static Tensor zeros(TensorSpec spec);
  /// Rounds every value once, to nearest even. values: spec.numElements() long. Integers are exact up to 2^53.
  static Tensor fromDoubles(TensorSpec spec, std::span<const double> values);
  std::vector<double> toDoubles() const;
};

/// Encodes values into raw elements of dtype (one rounding), and back.
void encode(std::span<const double> values, DType dtype, std::byte* out);
void decode(const std::byte* in, DType dtype, std::span<double> values);

/// Tensors by name, in the order they were added.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace fuseline
