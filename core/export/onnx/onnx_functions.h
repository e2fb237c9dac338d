// Functions that an ONNX model defines for itself, written out where they are called.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

namespace fuseline {

/// Replaces calls by the nodes of the functions, in subgraphs and in functions, too. Tensors and nodes of a call get
/// names behind that of the call. Calls stay where functions call themselves, or where more nodes would come of them
/// than a model has.
void inlineFunctions(::onnx::ModelProto& model);

}  // namespace fuseline
