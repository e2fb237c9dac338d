// An ONNX graph as text: its tensors, and one line per node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <string>

namespace fuseline {

/// "norm/squares = Mul(norm/f32, norm/f32)": nodes with their attributes, inputs, outputs and weights with their types.
/// The data of weights is not in it.
std::string onnxListing(const ::onnx::GraphProto& graph);

/// "fnv1a64:0123456789abcdef", of the listing and of the numbers that ops compute with, but not of weights: detects
/// whether the graph was changed.
std::string onnxGraphHash(const ::onnx::GraphProto& graph);

}  // namespace fuseline
