// How each family of scalings finds the scale of a block. One file a family, and a line in scalers.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantizer.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

namespace fuseline {

template <class Stored>
struct BlockScale {
  /// Multiplier of the block's elements before they are rounded.
  float multiplier = 1.0f;
  /// A float32, or a code.
  Stored stored{};
};

/// Context of a scaling family for one quantized tensor, independent of its blocks.
struct ScalerContext {
  const QuantizerSpec& spec;
  const QuantizerInputs& inputs;
  DType dtype;
  /// Amax of the whole tensor.
  float amax;
};

/// Converts the amaxes of some blocks to their multipliers, and writes their stored scales one after the other.
using BlockScaler = std::function<void(std::span<float> amaxes, std::byte* stored)>;

/// scaleOf: a BlockScale from the amax of one block.
template <class ScaleOf>
BlockScaler eachBlock(ScaleOf scaleOf) {
  return [scaleOf](std::span<float> amaxes, std::byte* stored) {
    for (float& value : amaxes) {
      const auto scale = scaleOf(value);
      std::memcpy(stored, &scale.stored, sizeof(scale.stored));
      stored += sizeof(scale.stored);
      value = scale.multiplier;
    }
  };
}

struct ScalingFamily {
  BlockScaler (*makeScaler)(const ScalerContext& context);
  /// The dequantization factor. amax: of the quantized tensor, for scalings that store it.
  float (*dequantFactor)(std::uint32_t stored, float amax);
};

/// The family of a scaling.
const ScalingFamily& familyOf(Scaling scaling);

namespace scaling_families {
extern const ScalingFamily perTensor;
extern const ScalingFamily fp8Block;
extern const ScalingFamily mxfp8;
extern const ScalingFamily nvfp4;
}  // namespace scaling_families

}  // namespace fuseline
