// Losses of a tensor's quantization.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

#include <cstddef>

namespace fuseline {

struct QuantizationLosses {
  double amax = 0.0;         // of the tensor; NaN and infinity do not count
  double smallest = 0.0;     // the smallest nonzero magnitude
  double scaleInvMin = 0.0;  // over all blocks: the dequantization factor
  double scaleInvMax = 0.0;
  double underflowShare = 0.0;   // of the nonzero elements: those that become 0
  double saturationShare = 0.0;  // of all elements: those beyond the largest value of the format
  double meanSquaredError = 0.0;
  double signalToNoise = 0.0;  // in dB: the mean square of the tensor over the mean squared error; infinite without one

  /// log2(amax / smallest): the binary orders of magnitude that the tensor spans.
  double dynamicRange() const;
  bool operator==(const QuantizationLosses&) const = default;
};

/// memory: the quantized tensor of x that `copy` describes. With a transform, which quantizes other numbers, underflow
/// and saturation are 0.
QuantizationLosses lossesOf(const Tensor& x, const TensorSpec& copy, const std::byte* memory);

}  // namespace fuseline
