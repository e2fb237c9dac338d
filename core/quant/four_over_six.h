// NVFP4's 4over6: a block's scale maps its largest value to 6 or 4, with the smaller error.
// Source: TransformerEngine 2.20.2, cast/nvfp4/quantize_4over6_nvfp4.cuh; its PyTorch reference, reference_nvfp4.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/scalers.h"
#include "core/tensor/quantizer_spec.h"

#include <cstdint>
#include <span>

namespace fuseline {

class FourOverSixScaler {
 public:
  /// amax: of the whole tensor.
  FourOverSixScaler(FourOverSix options, float amax);

  /// block: its rows of up to 16 elements one after the other.
  BlockScale<std::uint8_t> scaleOf(std::span<const float> block, std::int64_t rows) const;
  /// The amax that dequantizes values and scales as in every NVFP4 tensor, whose scales reach 448.
  float storedAmax() const;

 private:
  BlockScale<std::uint8_t> candidate(float wanted) const;
  float errorOf(const BlockScale<std::uint8_t>& scale, std::span<const float> block, std::int64_t rows) const;
  float lossOf(float value, float scale, float multiplier) const;

  FourOverSix m_options;
  float m_amax;
  float m_tensorScale;
};

}  // namespace fuseline
