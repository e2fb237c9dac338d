// The order in which nodes of an ONNX graph can run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

namespace fuseline {

/// Brings the nodes into an order in which they can run; those that can already keep theirs. Nodes that wait for each
/// other, and those that wait for such, stay behind all others.
void sortNodes(::onnx::GraphProto& graph);

}  // namespace fuseline
