// Products of ONNX Runtime with quantized weights, in nodes of the standard ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <filesystem>

namespace fuseline {

/// MatMulNBits becomes DequantizeLinear and MatMul; DynamicQuantizeMatMul and MatMulIntegerToFloat become MatMulInteger
/// and products with the scales. Others stay. folder: of external data.
void splitPackedProducts(::onnx::GraphProto& graph, const std::filesystem::path& folder);

}  // namespace fuseline
