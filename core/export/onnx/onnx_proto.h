// The messages of ONNX files, and their numbers for element types and versions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "core/tensor/element_format.h"

#include <cstdint>
#include <string_view>

// The library's messages are those of onnx-ml.proto.
#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#include <onnx/onnx_pb.h>

namespace fuseline {

/// All written operators are in opset 20, whose Gelu is the newest. IR version 9 was released with it.
inline constexpr std::int64_t kOnnxOpset = 20;
inline constexpr std::int64_t kOnnxIrVersion = 9;
/// The newest opset of which Fuseline knows that it changes no op that import reads.
inline constexpr std::int64_t kNewestOnnxOpset = 27;

/// TensorProto.DataType, as a number: headers older than ONNX 1.14 have no names for float8.
std::int32_t onnxType(DType dtype);
/// E4M3 is FLOAT8E4M3FN, E5M2 is FLOAT8E5M2. Precondition: it is not E2M1.
std::int32_t onnxType(ElementFormat format);
/// "bfloat16", "float8e4m3fn"; "type 7" for types that Fuseline does not use.
std::string onnxTypeName(std::int32_t type);

}  // namespace fuseline
