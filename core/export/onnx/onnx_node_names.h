// Names of nodes of an ONNX graph, and of groups of nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

using ModelNodes = std::vector<const ::onnx::NodeProto*>;

/// The name in a form that is safe in a message: names in a model may contain any bytes.
std::string shown(const std::string& name);
/// The same, but never shortened: for programs that look it up in the model.
std::string wholeText(const std::string& name);

/// Its name, if that is a path: "/model/layers.0/norm/Mul". Else the path of its PyTorch module, which
/// torch.onnx.export records in the metadata: "/model/layers/0/norm/mul_3". Else its name, which may be empty.
std::string pathOf(const ::onnx::NodeProto& node);

/// An op of several nodes is named after their common part: "norm/scaled" and "/model/norm/Mul" are parts.
std::string_view wholeName(std::string_view node);

/// Name of an op: that of its nodes as a whole; "attn/reshape" in a PyTorch module with more than this op. For nodes
/// without names, the name of the op's type.
std::string nameOf(const ::onnx::NodeProto& node, const std::string& operation);

/// The common part of several nodes' names, "/model/layers.0/attn"; else by their kind, "attention".
std::string nameOf(const ModelNodes& nodes);

/// "12 nodes of the model: Transpose, MatMul, Softmax".
std::string descriptionOf(const ModelNodes& nodes);

}  // namespace fuseline
