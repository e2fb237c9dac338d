// Nodes of old opsets in the form of opset 20.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

namespace fuseline {

/// Source: the change log of the ONNX operator specifications. The opset of the model stays as it is.
void writeNewForms(::onnx::ModelProto& model);

/// The version of the standard ops; kOnnxOpset for a model that does not say.
std::int64_t standardOpset(const ::google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& opsets);

/// Softmax of an opset before 13 joins all axes from its own on; the sums of the last axis are the same in both forms.
bool isSoftmax(const ::onnx::NodeProto& node);
/// Before opset 13 the axis is 1 where a node has none, later it is the last one: each node gets its own.
void writeAxesOfSoftmaxes(::onnx::GraphProto& graph);
inline constexpr std::int64_t kOpsetOfSoftmaxOfOneAxis = 13;

}  // namespace fuseline
