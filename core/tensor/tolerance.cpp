// The table of tolerances.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tolerance.h"

namespace fuseline {

Tolerance toleranceOf(DType dtype) {
  switch (dtype) {
    case DType::F32: return {.relative = 1.3e-6, .absolute = 1e-5};
    case DType::F16: return {.relative = 1e-3, .absolute = 1e-5};
    case DType::BF16: return {.relative = 1.6e-2, .absolute = 1e-5};
    case DType::E4M3: return toleranceOf(ElementFormat::E4M3);
    case DType::I64:
    case DType::U8: return {};
  }
  return {};
}

Tolerance toleranceOf(ElementFormat format) {
  if (format == ElementFormat::E4M3) return {.relative = 0.125, .absolute = 0.0675};
  return {.relative = 0.25, .absolute = 0.125};
}

}  // namespace fuseline
