// Functions defined by an ONNX model itself, expanded where they are called.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

namespace fuseline {

/// Replaces calls by the nodes of the functions, also in subgraphs and in functions. The names of a call's tensors and
/// nodes are prefixed with the call's name. Calls are kept if functions call themselves, or if the expansion exceeds
/// the maximum number of nodes of a model.
void inlineFunctions(::onnx::ModelProto& model);

}  // namespace fuseline
