// Functions of nodes on arrays of numbers that are more than elementwise: reductions, quantization, views, gathers.
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

/// Larger arrays are not computed.
inline constexpr std::int64_t kMostNumbers = std::int64_t{1} << 24;

/// ReduceMean, ReduceSum, ReduceSumSquare, ReduceL2, ReduceMax and ReduceMin; nullptr for other types.
NumberArrayPtr reducedNumbers(const ::onnx::NodeProto& node, const NumberArray& x, const std::vector<double>& axes);

/// DequantizeLinear. zeroPoint: nullptr is 0.
NumberArrayPtr dequantizedNumbers(const ::onnx::NodeProto& node, const NumberArray& x, const NumberArray& scale,
                                  const NumberArray* zeroPoint);

/// The shape that Reshape, Unsqueeze, Squeeze and Flatten give x. numbers: their second input, if they have one.
std::optional<Shape> viewShape(const ::onnx::NodeProto& node, const Shape& x, const std::vector<double>& numbers);

/// Shape: the extents between its attributes start and end.
NumberArrayPtr shapeNumbers(const ::onnx::NodeProto& node, const Shape& x);

/// GatherND without batch dimensions; nullptr: an index is outside.
NumberArrayPtr gatheredNumbers(const NumberArray& x, const NumberArray& indices);

/// Tile; nullptr: the repeats are not those of its axes, or make too many numbers.
NumberArrayPtr tiledNumbers(const NumberArray& x, const std::vector<double>& repeats);

/// CumSum.
NumberArrayPtr cumulatedNumbers(const ::onnx::NodeProto& node, const NumberArray& x, std::int64_t axis);

}  // namespace fuseline
