// Elements stand in the message itself, in one of its lists of numbers, or in a file beside the model.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_weights.h"

#include "core/document/json_text.h"
#include "core/export/onnx/onnx_reading.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

std::string nameOf(const ::onnx::TensorProto& tensor) {
  return isUtf8(tensor.name()) ? shortened(tensor.name()) : std::string("?");
}

Error weightError(const ::onnx::TensorProto& tensor, std::string_view problem) {
  return Error{fmt::format("The weight {}: {}", nameOf(tensor), problem)};
}

template <class T>
Bytes bytesOf(const T* data, std::size_t count) {
  Bytes bytes(count * sizeof(T));
  if (count > 0) std::memcpy(bytes.data(), data, bytes.size());
  return bytes;
}

// ---- external data

/// Of the list of keys and values; empty: it is not there.
std::string externalField(const ::onnx::TensorProto& tensor, std::string_view key) {
  for (const auto& entry : tensor.external_data())
    if (entry.key() == key) return entry.value();
  return {};
}

/// 0 where it is not there; nothing where it is no number.
std::optional<std::uint64_t> externalOffset(const ::onnx::TensorProto& tensor) {
  const std::string text = externalField(tensor, "offset");
  std::uint64_t offset = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), offset);
  if (text.empty()) return 0;
  return problem == std::errc() && end == text.data() + text.size() ? std::optional(offset) : std::nullopt;
}

/// A model must not read what stands elsewhere.
bool isBeside(const fs::path& location) {
  const bool climbs = std::ranges::find(location, fs::path("..")) != location.end();
  return !location.empty() && location.is_relative() && !climbs;
}

Result<Bytes> externalBytes(const ::onnx::TensorProto& tensor, std::uint64_t size, const fs::path& folder) {
  const std::string location = externalField(tensor, "location");
  const std::optional<std::uint64_t> offset = externalOffset(tensor);
  if (!isUtf8(location) || !isBeside(location) || !offset)
    return weightError(tensor, "its data are in another file, and what the model says of that is no place beside it.");
  const fs::path path = folder / location;
  std::error_code problem;
  const std::uintmax_t fileSize = fs::file_size(path, problem);
  if (problem)
    return weightError(tensor, fmt::format("its data are in {}, which cannot be read: {}. Put it beside the model.",
                                           path.string(), problem.message()));
  if (fileSize < size || fileSize - size < *offset)
    return weightError(tensor, fmt::format("expected {} bytes from byte {} of {} on, which has {}.", size, *offset,
                                           path.string(), fileSize));
  Bytes bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(*offset));
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    return weightError(tensor, fmt::format("{} cannot be read.", path.string()));
  return bytes;
}

Result<Bytes> storedBytes(const ::onnx::TensorProto& tensor, std::uint64_t size, const fs::path& folder) {
  if (tensor.data_location() == ::onnx::TensorProto::EXTERNAL) return externalBytes(tensor, size, folder);
  if (tensor.float_data_size() > 0)
    return bytesOf(tensor.float_data().data(), static_cast<std::size_t>(tensor.float_data_size()));
  if (tensor.int32_data_size() > 0) {
    const std::vector<std::uint16_t> halves = halfBits(tensor);
    return bytesOf(halves.data(), halves.size());
  }
  return bytesOf(tensor.raw_data().data(), tensor.raw_data().size());
}

/// [rows, cols] to [cols, rows].
Bytes transposed(const Bytes& data, std::int64_t rows, std::int64_t cols, std::size_t elementBytes) {
  Bytes result(data.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col)
      std::memcpy(result.data() + static_cast<std::size_t>(col * rows + row) * elementBytes,
                  data.data() + static_cast<std::size_t>(row * cols + col) * elementBytes, elementBytes);
  return result;
}

Shape shapeInOp(const FoundWeight& weight) {
  Shape shape = shapeOf(*weight.constant);
  if (weight.isTransposed && shape.size() == 2) std::swap(shape[0], shape[1]);
  return shape;
}

}  // namespace

namespace {

Result<Tensor> readStacked(const FoundWeight& weight, const TensorSpec& spec, const fs::path& folder) {
  TensorSpec half = spec;
  half.shape[0] /= 2;
  Tensor whole{.spec = spec, .data = {}};
  for (const ::onnx::TensorProto* const constant : {weight.constant, weight.below}) {
    const Result<Tensor> part = readWeight({weight.parameter, constant, weight.isTransposed}, half, folder);
    if (!part) return part.error();
    whole.data.insert(whole.data.end(), part->data.begin(), part->data.end());
  }
  return whole;
}

}  // namespace

Result<Tensor> readWeight(const FoundWeight& weight, const TensorSpec& spec, const fs::path& folder) {
  if (weight.below) return readStacked(weight, spec, folder);
  if (!weight.constant) return Tensor::zeros(spec);
  const ::onnx::TensorProto& constant = *weight.constant;
  const std::optional<DType> dtype = floatTypeOf(constant.data_type());
  if (!dtype)
    return weightError(
        constant, fmt::format("its elements are {}, expected f32, f16 or bf16.", onnxTypeName(constant.data_type())));
  Tensor tensor{.spec = {.dtype = *dtype, .shape = shapeInOp(weight)}, .data = {}};
  if (tensor.spec.shape != spec.shape)
    return weightError(constant, fmt::format("it is {}, but the op has {}.", toString(tensor.spec), toString(spec)));
  const auto size = static_cast<std::uint64_t>(tensor.spec.bytes());
  Result<Bytes> data = storedBytes(constant, size, folder);
  if (!data) return data.error();
  if (data->size() != size)
    return weightError(constant,
                       fmt::format("expected {} bytes for {}, found {}.", size, toString(tensor.spec), data->size()));
  const auto elementBytes = static_cast<std::size_t>(sizeBytes(*dtype));
  tensor.data = weight.isTransposed ? transposed(*data, tensor.spec.shape[1], tensor.spec.shape[0], elementBytes)
                                    : std::move(*data);
  return *dtype == spec.dtype ? tensor : Tensor::fromDoubles(spec, tensor.toDoubles());
}

Result<ReadWeights> readWeights(const Graph& graph, const WeightSource& source) {
  ReadWeights read;
  for (const Node& node : graph.nodes())
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot) {
      const std::optional<FoundWeight> weight = source.find(node, slot);
      if (!weight) {
        read.missing.push_back(node.parameterName(slot));
        continue;
      }
      Result<Tensor> tensor = readWeight(*weight, node.parameters[static_cast<std::size_t>(slot)], source.folder);
      if (!tensor) return tensor.error();
      read.tensors.emplace_back(node.parameterName(slot), std::move(*tensor));
    }
  return read;
}

}  // namespace fuseline
