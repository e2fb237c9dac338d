// Which ops round their main input to the dtype of their weight before they compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <optional>

namespace fuseline {

/// The dtype to which a linear op or a norm first rounds its main input, if that has another dtype than its weight, as
/// TransformerEngine's ops do. Nothing if the input is not rounded: float32 holds all of them, and an input that a
/// recipe quantizes is quantized from its own dtype.
std::optional<DType> roundedInput(const Graph& graph, const Node& node);

}  // namespace fuseline
