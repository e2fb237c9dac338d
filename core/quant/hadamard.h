// The random Hadamard transform that spreads outliers over 16 elements before NVFP4 rounds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/hadamard.h"
#include "core/quant/matrix.h"

namespace fuseline {

/// Every 16 elements of a row become x * diag(signs) * H / 4, H being Sylvester's matrix and the signs fixed; rounded
/// once to bf16. x.cols: a multiple of 16. Source: TransformerEngine, wgrad operands of NVFP4.
Matrix randomHadamard(const Matrix& x);

/// The inverse, in float32.
Matrix inverseRandomHadamard(const Matrix& y);

}  // namespace fuseline
