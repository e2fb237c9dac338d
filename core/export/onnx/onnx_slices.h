// Slices that take a tensor apart, as the one Split that they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_node_facts.h"
#include "core/export/onnx/onnx_proto.h"

#include <cstdint>

namespace fuseline {

/// Slice nodes that together take all equal parts of one tensor along an axis become one Split node: older exporters
/// write chunk() in this way. opset: that of the model.
void joinSlices(::onnx::GraphProto& graph, const OnnxNodeFacts::Lookup& lookup, std::int64_t opset);

}  // namespace fuseline
