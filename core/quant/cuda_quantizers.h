// Quantizers that the CUDA backend has kernels for; plans for a GPU that is not here need to know, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/support/result.h"
#include "core/tensor/quantizer_spec.h"

#include <optional>
#include <string>

namespace fuseline {

/// Recipes use one scaling for both directions of a tensor, except for CustomRecipe.
Verdict isQuantizedByCuda(const TensorQuantizers& quantizers);

/// "fc1: " and the reason of the first op with a tensor that the CUDA backend cannot quantize; nothing: there is none.
std::optional<std::string> notQuantizedByCuda(const Graph& graph);

}  // namespace fuseline
