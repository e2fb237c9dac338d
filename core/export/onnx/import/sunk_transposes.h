// Norms of queries and keys whose heads were moved before their tokens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

namespace fuseline {

/// A norm of rows behind a Transpose that keeps the last axis becomes the same norm before it, so that rows stay as the
/// layer makes them.
void sinkTransposes(::onnx::GraphProto& graph);

}  // namespace fuseline
