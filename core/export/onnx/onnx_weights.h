// Weights out of ONNX models, as the parameters of ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"
#include "core/graph/graph.h"
#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// How integers or FP8 values of a constant become numbers: (value - zero point) scale, as in DequantizeLinear.
struct WeightCodes {
  const ::onnx::TensorProto* scale = nullptr;      // one element, or one for each index of the axis
  const ::onnx::TensorProto* zeroPoint = nullptr;  // nullptr: 0
  std::int64_t axis = 0;                           // of the constant as the model has it
  std::int64_t blockSize = 0;                      // along the axis; 0: no blocks
};

/// A parameter of an op, such as "weight", and the constant of a graph that holds it.
struct FoundWeight {
  std::string parameter;
  const ::onnx::TensorProto* constant = nullptr;  // nullptr: every element is `fill`
  bool isTransposed = false;                      // a matrix: [in, out] in the model
  double fill = 0.0;
  double factor = 1.0;    // of each element, such as alpha and beta of Gemm
  bool isSpread = false;  // extents of one are dropped, and a single element is broadcast
  std::optional<WeightCodes> codes = std::nullopt;
  bool areHalvesSwapped = false;                       // the second half of the rows comes first
  std::shared_ptr<const FoundWeight> below = nullptr;  // the following rows, from another constant in the same form
};

/// The elements, rounded once if the spec has a narrower dtype. folder: of the external data.
/// Errors: another shape, or number of bytes; elements other than f32, f16 or bf16; external data that cannot be read,
/// or are outside of the folder.
Result<Tensor> readWeight(const FoundWeight& weight, const TensorSpec& spec, const std::filesystem::path& folder);

/// How many scales a quantized tensor has along an axis, or in blocks along it, and the one of an element.
std::int64_t numScales(const Shape& shape, std::int64_t axis, std::int64_t blockSize);
std::size_t scaleIndex(const Shape& shape, std::int64_t element, std::int64_t axis, std::int64_t blockSize);
/// Elements of integer types of up to 32 bits, from raw data. Nothing: it is another type.
std::optional<std::vector<double>> integersIn(const ::onnx::TensorProto& tensor, const std::vector<std::byte>& bytes);

/// Bytes of a tensor; 0: its type has no fixed size, such as strings.
std::int64_t sizeInBytes(const ::onnx::TensorProto& tensor);
/// Size of an element type, in bytes; 0: the type has no fixed size, such as strings, or two elements share a byte.
std::int64_t elementSize(std::int32_t type);
/// The elements of any constant, as raw_data has them. Errors: as readWeight().
Result<std::vector<std::byte>> elementBytes(const ::onnx::TensorProto& constant, const std::filesystem::path& folder);

struct WeightFinder {
  /// Nothing: the model has none for this parameter, by its number.
  std::function<std::optional<FoundWeight>(const Node& node, int slot)> find;
  std::filesystem::path folder;
};

struct ReadWeights {
  NamedTensors tensors;              // named as in safetensors files: "fc1.weight"
  std::vector<std::string> missing;  // parameters that the model has nothing for
};
/// Reads all parameters of a graph. Errors: as readWeight().
Result<ReadWeights> readWeights(const Graph& graph, const WeightFinder& source);

}  // namespace fuseline
