// ONNX Runtime's fused attention nodes in simpler forms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <filesystem>

namespace fuseline {

/// Takes projections out of com.microsoft Attention, biases and key masks out of MultiHeadAttention, and rotary
/// embeddings out of GroupQueryAttention, so that a layer, a sum, a mask and a rotary embedding are found as ops. Nodes
/// with keys of earlier calls stay. folder: of external data.
void splitFusedAttention(::onnx::ModelProto& model, const std::filesystem::path& folder);

}  // namespace fuseline
