// Computes an ONNX graph in double precision, by the ONNX specification of its ops, for models that tests make.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"
#include "core/ops/operation.h"

#include <map>
#include <string>

namespace fuseline::testing {

using OnnxTensors = std::map<std::string, ReferenceTensor>;

/// Every tensor of the graph by name. given: its inputs, and initializers that have no data. Throws
/// std::invalid_argument for an op or a type that no export writes, std::out_of_range for a tensor that is read before
/// it is produced.
OnnxTensors evaluate(const ::onnx::GraphProto& graph, OnnxTensors given);

}  // namespace fuseline::testing
