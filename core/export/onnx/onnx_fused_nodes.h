// Takes apart nodes that are several ops in one: those that onnxruntime's optimizer writes, and rare forms of Gemm.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <cstdint>

namespace fuseline {

/// Replaces fused nodes by equivalent nodes of the standard ops, so that shapes can be inferred and ops be found. From
/// the domain com.microsoft: BiasAdd, BiasGelu, FastGelu, Gelu, QuickGelu, FusedGemm, FusedMatMul and GemmFastGelu, if
/// standard nodes can express them, and SkipLayerNormalization and SkipSimplifiedLayerNormalization without a mean and
/// a deviation as outputs. A Gemm with a transposed A, or with a C that is no row of constants, becomes several nodes.
/// Others are kept.
void splitFusedNodes(::onnx::GraphProto& graph, std::int64_t opset = kOnnxOpset);

}  // namespace fuseline
