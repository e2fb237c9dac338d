// How each family of scalings finds the scale of a block. One file a family, and a line in scalers.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantizer.h"

#include <cstdint>
#include <functional>

namespace fuseline {

struct BlockScale {
  /// What the elements of the block are multiplied by before they are rounded.
  float multiplier = 1.0f;
  /// What is stored: the bits of a float32, or a code.
  std::uint32_t stored = 0;
};

/// What a family may know of a copy before it sees the blocks.
struct ScalerContext {
  const QuantizerSpec& spec;
  const QuantizerInputs& inputs;
  DType dtype;
  /// Of the whole copy.
  float amax;
};

using BlockScaler = std::function<BlockScale(float blockAmax)>;

struct ScalingFamily {
  BlockScaler (*makeScaler)(const ScalerContext& context);
  /// The factor that dequantizes. amax: that of the copy, for scalings that keep it.
  float (*dequantFactor)(std::uint32_t stored, float amax);
};

/// Of a scaling.
const ScalingFamily& familyOf(Scaling scaling);

namespace scaling_families {
extern const ScalingFamily perTensor;
extern const ScalingFamily fp8Block;
extern const ScalingFamily mxfp8;
extern const ScalingFamily nvfp4;
}  // namespace scaling_families

}  // namespace fuseline
