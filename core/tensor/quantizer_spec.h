// QuantizerSpec: which tensor becomes what; what recipes give out and linear ops are annotated with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/quantized_form.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fuseline {

struct ScaleOptions {
  /// A smaller amax counts as this one.
  float epsilon = 0.0f;
  /// Rounds scales down to powers of two, so that no value is lost to the multiplication.
  bool isPowerOfTwo = false;
  bool operator==(const ScaleOptions&) const = default;
};

/// Of NVFP4: a block chooses whether its largest value becomes 4 or 6 (core/quant/four_over_six.h).
struct FourOverSix {
  int scaleMax = 256;        // what the scales of blocks reach: 256 or 448
  bool isBySquares = false;  // the error by which a block chooses; otherwise by magnitudes
  bool operator==(const FourOverSix&) const = default;
};

struct QuantizerSpec {
  ElementFormat format = ElementFormat::E4M3;
  Scaling scaling = Scaling::PerTensor;
  /// Of float32 scales.
  ScaleOptions scale;
  /// The columnwise copy is taken of the random Hadamard transform of the tensor.
  bool transformsColumnwise = false;
  bool roundsStochastically = false;
  /// The scale is known before the tensor is: it follows from the amaxes of earlier steps (DelayedScaling).
  bool isDelayed = false;
  /// A columnwise copy: quantized is what the rowwise one stands for, not the tensor itself.
  bool isOfRowwise = false;
  std::optional<FourOverSix> fourOverSix = std::nullopt;
  bool operator==(const QuantizerSpec&) const = default;
};

/// The form of the copy that a quantizer makes for a direction.
QuantizedForm formOf(const QuantizerSpec& quantizer, Direction direction);

/// How one tensor is quantized for each of the GEMMs that read it. Nothing: that GEMM reads it as it is.
struct TensorQuantizers {
  std::optional<QuantizerSpec> rowwise;
  std::optional<QuantizerSpec> columnwise;
  /// Where columnwise is nothing, the GEMM of backward reads the rowwise copy, dequantized.
  bool isDequantizedInBackward = false;

  bool any() const { return rowwise || columnwise; }
  bool isDelayed() const { return (rowwise && rowwise->isDelayed) || (columnwise && columnwise->isDelayed); }
  const std::optional<QuantizerSpec>& of(Direction direction) const {
    return direction == Direction::Rowwise ? rowwise : columnwise;
  }
  bool operator==(const TensorQuantizers&) const = default;
};

/// Which GEMMs of codes add their partial sums up in full float32. Tensor cores of Hopper keep fewer bits of the sums
/// that are not promoted, and are faster.
struct SplitAccumulators {
  bool fprop = true;
  bool dgrad = true;
  bool wgrad = true;
  bool operator==(const SplitAccumulators&) const = default;
};

/// The quantizers of a linear op. fprop reads input and weight rowwise, dgrad the gradient rowwise and the weight
/// columnwise, wgrad the gradient and the input columnwise.
struct LinearQuantizers {
  TensorQuantizers input;
  TensorQuantizers weight;
  TensorQuantizers gradOutput;
  SplitAccumulators splitAccumulators;
  /// Of a CustomRecipe: TransformerEngine has a quantizer for every tensor, one that does nothing for what stays as it
  /// is.
  bool hasEverySlot = false;

  bool any() const { return input.any() || weight.any() || gradOutput.any(); }
  bool operator==(const LinearQuantizers&) const = default;
};

/// How scales follow from the amaxes of earlier steps (core/quant/delayed_scaling.h).
struct DelayedScaling {
  /// Prefix of the names of states: recipes with other formats have other states.
  std::string identity;
  std::int64_t historyLength = 1024;
  int margin = 0;
  /// Otherwise the largest of the history.
  bool takesMostRecent = false;
  bool operator==(const DelayedScaling&) const = default;
};

}  // namespace fuseline
