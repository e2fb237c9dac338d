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
  /// What the elements of the block are multiplied by before they are rounded.
  float multiplier = 1.0f;
  /// A float32, or a code.
  Stored stored{};
};

/// What a family may know of a copy before it sees the blocks.
struct ScalerContext {
  const QuantizerSpec& spec;
  const QuantizerInputs& inputs;
  DType dtype;
  /// Of the whole copy.
  float amax;
};

/// Turns the amaxes of some blocks into their multipliers, and writes what is stored for them one after the other.
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
