// Slices that take a tensor apart, as the one Split that they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_node_facts.h"
#include "core/export/onnx/onnx_proto.h"

#include <cstdint>

namespace fuseline {

/// Nodes Slice of one tensor that are all of its equal parts along an axis become a node Split: so older exporters
/// write chunk(). opset: that of the model.
void joinSlices(::onnx::GraphProto& graph, const OnnxNodeFacts::Lookup& lookup, std::int64_t opset);

}  // namespace fuseline
