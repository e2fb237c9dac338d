// Constants that a model computes from constants, such as a weight with an adapter added to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <filesystem>

namespace fuseline {

/// Replaces floating-point tensors that follow from constants alone by constants. Transposes, conversions,
/// QuantizeLinear and DequantizeLinear of a constant stay: patterns read through these. folder: of external data.
void foldConstants(::onnx::GraphProto& graph, const std::filesystem::path& folder);

}  // namespace fuseline
