// What nodes of an ONNX graph are called, alone and together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

using ModelNodes = std::vector<const ::onnx::NodeProto*>;

/// As it may stand in a message: names in a model are any bytes.
std::string shown(const std::string& name);
/// The same, but never shortened: for programs that look it up in the model.
std::string wholeText(const std::string& name);

/// Its name, where that is a path: "/model/layers.0/norm/Mul". Else by the module of PyTorch that it comes from, which
/// torch.onnx.export notes beside it: "/model/layers/0/norm/mul_3". Else its name, which may be empty.
std::string pathOf(const ::onnx::NodeProto& node);

/// An op of several nodes is called like what they have in common: "norm/scaled" and "/model/norm/Mul" are parts.
std::string_view wholeName(std::string_view node);

/// What an op is called: like its nodes as a whole; "attn/reshape" in a module of PyTorch that is more than this op. Of
/// nodes without names like itself.
std::string nameOf(const ::onnx::NodeProto& node, const std::string& operation);

/// What the names of several nodes have in common, "/model/layers.0/attn"; else by what they are, "attention".
std::string nameOf(const ModelNodes& nodes);

/// "12 nodes of the model: Transpose, MatMul, Softmax".
std::string descriptionOf(const ModelNodes& nodes);

}  // namespace fuseline
