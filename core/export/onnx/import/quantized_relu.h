// ReLUs that quantization tools leave out, since the codes behind them have no negative numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <filesystem>

namespace fuseline {

/// Adds a Relu before each QuantizeLinear whose zero point is the lowest code, unless its input is not negative anyway.
/// The model computes the same: such a node clips negative numbers. folder: of external data.
void addQuantizedRelus(::onnx::GraphProto& graph, const std::filesystem::path& folder);

}  // namespace fuseline
