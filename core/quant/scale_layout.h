// Scales as cuBLASLt reads them: padded, and for blocks of 16 and 32 swizzled into tiles.
// Source: cuBLAS 13.1 documentation, "1D block scaling factors layout" and the sizes of NVIDIA's samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantized_tensor.h"
#include "core/quant/scale_map.h"

namespace fuseline {

/// Positions of a quantized tensor's scales. Not for one scale per tensor.
ScaleMap scaleMapOf(const TensorSpec& nominal, Scaling scaling, Usage direction);
/// The same where blocks of 128 are read as four of MXFP8, each with mxScalesOf() of their scale.
ScaleMap mxScaleMapOf(const TensorSpec& nominal, Scaling scaling, Usage direction);

/// Shape of a quantized tensor's scales as cuBLASLt reads them, including padding:
///   per_tensor     [1]
///   block_1x128    [ceil(K/128), pad4(M)], outer rows contiguous
///   block_128x128  [ceil(M/128), pad4(ceil(K/128))]
///   mx_*, nv_*     [pad128(M), pad4(ceil(K/block))], swizzled; of blocks with several rows every row has its scale
/// with M and K exchanged for columnwise quantized tensors.
Shape gemmScalesShape(const TensorSpec& nominal, Scaling scaling, Usage direction);

/// Rearranges the scales of both directions; padding is zero. Does nothing if they already have the requested layout.
QuantizedTensor withScaleLayout(QuantizedTensor tensor, ScaleLayout layout);

}  // namespace fuseline
