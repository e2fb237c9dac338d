// Constants of DequantizeLinear as numbers, where no layer reads them as its weight.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <filesystem>

namespace fuseline {

/// Makes QuantizeLinear and DequantizeLinear of onnxruntime, which allow more types, the standard ones, if they are of
/// 8 bits or of a weight.
void standardizeQuantization(::onnx::GraphProto& graph);

/// Replaces DequantizeLinear nodes of small constants, as of a norm's weight or a table of biases, by constants in the
/// type of their scales. Matrices of layers keep their codes, which are read when they are needed. folder: of external
/// data.
void foldSmallCodes(::onnx::GraphProto& graph, const std::filesystem::path& folder);

}  // namespace fuseline
