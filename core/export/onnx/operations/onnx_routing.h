// TopKRouter, MoEAuxLoss, MoEPermute and MoEUnpermute in ops of ONNX.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_graph.h"

namespace fuseline {

/// All add the nodes of the current op, and set its outputs.
void addOnnxRouter(OnnxGraph& graph);
void addOnnxAuxLoss(OnnxGraph& graph);
void addOnnxPermute(OnnxGraph& graph);
void addOnnxUnpermute(OnnxGraph& graph);

}  // namespace fuseline
