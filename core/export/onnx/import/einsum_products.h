// Einsum nodes that multiply rows by a matrix.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

namespace fuseline {

/// "bsi,io->bso" and "bsi,oi->bso" become MatMul, the latter behind a Transpose.
void writeEinsumsAsProducts(::onnx::GraphProto& graph);

}  // namespace fuseline
