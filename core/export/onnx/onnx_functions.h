// Functions defined by an ONNX model itself, expanded where they are called.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <string>

namespace fuseline {

/// Replaces calls by the nodes of the functions, also in subgraphs and in functions. The names of a call's tensors and
/// nodes are prefixed with the call's name. Calls are kept if functions call themselves, or if the expansion exceeds
/// the maximum number of nodes of a model.
void inlineFunctions(::onnx::ModelProto& model);

/// The name of a function that calls itself, directly or through others; empty if there is none.
std::string recursiveFunction(const ::onnx::ModelProto& model);

}  // namespace fuseline
