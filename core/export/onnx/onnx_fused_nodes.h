// Takes apart nodes that are several ops in one: those that onnxruntime's optimizer writes, and rare forms of Gemm.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

namespace fuseline {

/// Replaces them by nodes of the standard ops that compute the same, so that shapes can be inferred and ops be found.
/// Of the domain com.microsoft: BiasAdd, BiasGelu, FastGelu, Gelu, QuickGelu, FusedGemm, FusedMatMul and GemmFastGelu,
/// as far as standard nodes can say what they do, and SkipLayerNormalization and SkipSimplifiedLayerNormalization
/// without a mean and a deviation as outputs. A Gemm with a transposed A, or a C that is no row of constants, becomes
/// several nodes. Others stay as they are.
void splitFusedNodes(::onnx::GraphProto& graph);

}  // namespace fuseline
