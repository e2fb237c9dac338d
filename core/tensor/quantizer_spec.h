// QuantizerSpec: the quantized form of a tensor; recipes assign it, and linear ops are annotated with it.
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

/// Option of NVFP4: a block maps its largest value to 4 or 6 (core/quant/four_over_six.h).
struct FourOverSix {
  int scaleMax = 256;        // largest block scale: 256 or 448
  bool isBySquares = false;  // a block chooses by squared error; otherwise by absolute error
  bool operator==(const FourOverSix&) const = default;
};

struct QuantizerSpec {
  ElementFormat format = ElementFormat::E4M3;
  Scaling scaling = Scaling::PerTensor;
  /// Options of float32 scales.
  ScaleOptions scale;
  /// The columnwise tensor is quantized from the random Hadamard transform of the tensor.
  bool transformsColumnwise = false;
  bool roundsStochastically = false;
  /// The scale is known before the tensor is: it follows from the amaxes of earlier steps (DelayedScaling).
  bool isDelayed = false;
  /// A columnwise quantized tensor that is computed from the dequantized rowwise one, not from the tensor itself.
  bool isOfRowwise = false;
  std::optional<FourOverSix> fourOverSix = std::nullopt;
  bool operator==(const QuantizerSpec&) const = default;
};

/// The form of the tensor that a quantizer produces for a direction.
QuantizedForm formOf(const QuantizerSpec& quantizer, Usage direction);

/// The quantizers of one tensor for each of the GEMMs that read it. Nothing: that GEMM reads the plain tensor.
struct TensorQuantizers {
  std::optional<QuantizerSpec> rowwise;
  std::optional<QuantizerSpec> columnwise;
  /// If columnwise is nothing, the GEMM of backward reads the rowwise tensor, dequantized.
  bool isDequantizedInBackward = false;

  bool any() const { return rowwise || columnwise; }
  bool isDelayed() const { return (rowwise && rowwise->isDelayed) || (columnwise && columnwise->isDelayed); }
  const std::optional<QuantizerSpec>& of(Usage direction) const {
    return direction == Usage::Rowwise ? rowwise : columnwise;
  }
  bool operator==(const TensorQuantizers&) const = default;
};

/// The GEMMs of quantized operands that accumulate their partial sums in full float32. Hopper's tensor cores keep fewer
/// bits of sums that are not promoted, and are then faster.
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
  /// Set by CustomRecipe: TransformerEngine has a quantizer for every tensor, and an identity quantizer for unquantized
  /// ones.
  bool hasEverySlot = false;
  /// The weight exists as its quantized tensors alone: TransformerEngine's quantized_model_init.
  bool storesWeight = false;

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
  /// On several ranks: the amax of a tensor is the largest of all ranks.
  bool reducesAmax = true;
  bool operator==(const DelayedScaling&) const = default;
};

}  // namespace fuseline
