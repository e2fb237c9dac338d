// Which quantized tensors a GEMM multiplies by each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"

#include <functional>
#include <optional>

namespace fuseline {

/// An operand of a GEMM, and how it is quantized; nothing: it is not.
struct GemmFactor {
  TensorType tensor = TensorType::Input;
  std::optional<QuantizerSpec> quantizer;
};

/// Whether tensor cores, and TransformerEngine's GEMM, multiply the two by each other. isStrict: no also if only one of
/// them is quantized, or only one is transformed; TransformerEngine then raises, or computes a wrong result.
Verdict canMultiply(GemmRole gemm, const GemmFactor& a, const GemmFactor& b, bool isStrict);

/// Whether a delayed scale serves both directions of a tensor: TransformerEngine's HybridQuantizer supports none.
Verdict isDelayedWhole(TensorType tensor, const std::function<std::optional<QuantizerSpec>(OperandRole)>& quantizerFor);

}  // namespace fuseline
