// torch.nn.MultiheadAttention with batch_first, which exchanges tokens and batch before its layers and after them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

namespace fuseline {

/// The layers of such attention compute rows in the order of its inputs: the transposes go to the attention itself,
/// which reads either order.
void moveBatchFirst(::onnx::GraphProto& graph);

}  // namespace fuseline
