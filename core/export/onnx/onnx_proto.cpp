// Source: onnx/onnx.proto, TensorProto.DataType.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_proto.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::int32_t kFloat8E4M3FN = 17;
constexpr std::int32_t kFloat8E5M2 = 19;

constexpr std::array kNames = {std::pair(1, "float32"),
                               std::pair(2, "uint8"),
                               std::pair(6, "int32"),
                               std::pair(7, "int64"),
                               std::pair(9, "bool"),
                               std::pair(10, "float16"),
                               std::pair(11, "float64"),
                               std::pair(16, "bfloat16"),
                               std::pair(kFloat8E4M3FN, "float8e4m3fn"),
                               std::pair(kFloat8E5M2, "float8e5m2")};

}  // namespace

std::int32_t onnxType(DType dtype) {
  switch (dtype) {
    case DType::F32: return ::onnx::TensorProto::FLOAT;
    case DType::F16: return ::onnx::TensorProto::FLOAT16;
    case DType::BF16: return ::onnx::TensorProto::BFLOAT16;
    case DType::I64: return ::onnx::TensorProto::INT64;
    case DType::E4M3: return kFloat8E4M3FN;
    case DType::U8: return ::onnx::TensorProto::UINT8;
  }
  return ::onnx::TensorProto::UNDEFINED;
}

std::int32_t onnxType(ElementFormat format) { return format == ElementFormat::E5M2 ? kFloat8E5M2 : kFloat8E4M3FN; }

std::string onnxTypeName(std::int32_t type) {
  const auto found = std::ranges::find(kNames, type, [](const auto& entry) { return entry.first; });
  return found == kNames.end() ? fmt::format("type {}", type) : found->second;
}

}  // namespace fuseline
