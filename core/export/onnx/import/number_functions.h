// Functions of nodes on arrays of numbers that are more than elementwise: reductions, quantization, views.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_numbers.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

using NumberArrayPtr = std::shared_ptr<const NumberArray>;

/// ReduceMean, ReduceSum, ReduceSumSquare, ReduceL2, ReduceMax and ReduceMin; nullptr for other types.
NumberArrayPtr reducedNumbers(const ::onnx::NodeProto& node, const NumberArray& x, const std::vector<double>& axes);

/// DequantizeLinear. zeroPoint: nullptr is 0.
NumberArrayPtr dequantizedNumbers(const ::onnx::NodeProto& node, const NumberArray& x, const NumberArray& scale,
                                  const NumberArray* zeroPoint);

/// The shape that Reshape, Unsqueeze, Squeeze and Flatten give x. numbers: their second input, if they have one.
std::optional<Shape> viewShape(const ::onnx::NodeProto& node, const Shape& x, const std::vector<double>& numbers);

}  // namespace fuseline
