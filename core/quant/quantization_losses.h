// What a quantized copy lost of its tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

#include <cstddef>

namespace fuseline {

struct QuantizationLosses {
  double amax = 0.0;         // of the tensor; NaN and infinity do not count
  double smallest = 0.0;     // the smallest magnitude besides 0
  double scaleInvMin = 0.0;  // of all blocks: what a code is multiplied by
  double scaleInvMax = 0.0;
  double underflowShare = 0.0;   // of the elements that are not 0: those whose number is 0
  double saturationShare = 0.0;  // of all: those beyond the largest number of the format
  double meanSquaredError = 0.0;
  double signalToNoise = 0.0;  // in dB: the mean square of the tensor over the mean squared error; infinite without one

  /// log2(amax / smallest): the binary orders of magnitude that the tensor spans.
  double dynamicRange() const;
  bool operator==(const QuantizationLosses&) const = default;
};

/// memory: the copy of x that `copy` describes. Of a transform, whose codes are those of other numbers, underflow and
/// saturation are 0.
QuantizationLosses lossesOf(const Tensor& x, const TensorSpec& copy, const std::byte* memory);

}  // namespace fuseline
