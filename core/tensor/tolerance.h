// How far from each other two tensors of a dtype may be that should be the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "core/tensor/element_format.h"

namespace fuseline {

/// |actual - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double relative = 0.0;
  double absolute = 0.0;
  bool operator==(const Tolerance&) const = default;
};

/// The tolerances of TransformerEngine's tests (f32 1.3e-6, f16 1e-3, bf16 1.6e-2; absolute 1e-5; E4M3 0.125, 0.0675);
/// integers are exact.
Tolerance toleranceOf(DType dtype);
/// Tolerance of results computed from such quantized values; the same source.
Tolerance toleranceOf(ElementFormat format);
/// Tolerance of float32 results of a GEMM: tensor cores round its factors to TF32. The same source.
inline constexpr Tolerance kToleranceOfProducts{.relative = 1e-3, .absolute = 1e-5};

}  // namespace fuseline
