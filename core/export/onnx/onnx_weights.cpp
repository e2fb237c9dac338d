// Elements are in the message itself, in one of its lists of numbers, or in a file next to the model.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_weights.h"

#include "core/document/json_text.h"
#include "core/export/onnx/onnx_reading.h"
#include "core/numerics/minifloat.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
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

/// Entry of the list of keys and values; empty: it does not exist.
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

/// A model must not read files outside its folder.
bool isBeside(const fs::path& location) {
  const bool climbs = std::ranges::find(location, fs::path("..")) != location.end();
  return !location.empty() && location.is_relative() && !climbs;
}

Result<Bytes> externalBytes(const ::onnx::TensorProto& tensor, std::uint64_t size, const fs::path& folder) {
  const std::string location = externalField(tensor, "location");
  const std::optional<std::uint64_t> offset = externalOffset(tensor);
  if (location.empty()) return weightError(tensor, "its data are in another file, but the model does not name it.");
  if (!isUtf8(location) || !isBeside(location))
    return weightError(tensor, "its data are in another file, at a path that is not next to the model.");
  if (!offset)
    return weightError(tensor, "its data are in another file, but their offset in it is no number of bytes.");
  const fs::path path = folder / location;
  std::error_code problem;
  const std::uintmax_t fileSize = fs::file_size(path, problem);
  if (problem)
    return weightError(tensor,
                       fmt::format("its data are in {}, which cannot be read: {}. Put that file next to the model.",
                                   path.string(), problem.message()));
  if (fileSize < size || fileSize - size < *offset)
    return weightError(tensor, fmt::format("expected {} bytes from byte {} of {}, but the file has {}.", size, *offset,
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

/// FP8 values that the message stores in its list of int32.
Bytes narrowed(const ::onnx::TensorProto& tensor) {
  Bytes bytes;
  for (const std::int32_t value : tensor.int32_data()) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
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

Shape withoutOnes(const Shape& shape) {
  Shape rest;
  std::ranges::copy_if(shape, std::back_inserter(rest), [](std::int64_t extent) { return extent != 1; });
  return rest;
}

/// "f32" for dtypes that ops compute with.
std::string elementName(const ::onnx::TensorProto& constant) {
  const std::optional<DType> dtype = floatTypeOf(constant.data_type());
  return dtype ? std::string(dtypeName(*dtype)) : onnxTypeName(constant.data_type());
}

/// The shape of the elements, in the order in which the op has them.
Result<Shape> shapeInOp(const FoundWeight& weight, const TensorSpec& spec) {
  Shape shape = shapeOf(*weight.constant);
  if (weight.isTransposed && shape.size() == 2) std::swap(shape[0], shape[1]);
  const bool isOne = numElements(shape) == 1;
  if (weight.isSpread && (isOne || withoutOnes(shape) == withoutOnes(spec.shape))) return isOne ? Shape{} : spec.shape;
  if (shape == spec.shape) return shape;
  return weightError(*weight.constant, fmt::format("it is {} {}, but the op has {}.", toString(shape),
                                                   elementName(*weight.constant), toString(spec)));
}

// ---- quantized weights

constexpr std::array kCodes = {std::pair(::onnx::TensorProto::INT8, 1), std::pair(::onnx::TensorProto::UINT8, 1),
                               std::pair(::onnx::TensorProto::INT16, 2), std::pair(::onnx::TensorProto::UINT16, 2),
                               std::pair(::onnx::TensorProto::INT32, 4)};

template <class T>
std::vector<double> integersAs(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

template <class Format>
std::vector<double> minifloatsIn(const Bytes& bytes) {
  std::vector<double> values;
  for (const std::byte each : bytes)
    values.push_back(static_cast<double>(Format::toFloat(static_cast<std::uint8_t>(each))));
  return values;
}

// TensorProto.DataType, which older versions of the library lack.
constexpr std::int32_t kE4m3Fnuz = 18, kE5m2Fnuz = 20;

/// The formats without infinities and negative zero, whose only NaN is 0x80. Source: ONNX, "Float stored in 8 bits".
std::vector<double> unsignedZerosIn(const Bytes& bytes, int mantissaBits, int bias) {
  std::vector<double> values;
  for (const std::byte each : bytes) {
    const auto bits = std::to_integer<int>(each);
    const int exponent = (bits & 0x7F) >> mantissaBits, fraction = bits & ((1 << mantissaBits) - 1);
    const int significand = exponent == 0 ? fraction : fraction + (1 << mantissaBits);
    const double magnitude = std::ldexp(significand, std::max(exponent, 1) - bias - mantissaBits);
    values.push_back(bits == 0x80 ? std::numeric_limits<double>::quiet_NaN() : bits < 0x80 ? magnitude : -magnitude);
  }
  return values;
}

// Source: the ONNX specification. The first of two elements is in the lower four bits.
constexpr std::int32_t kUint4 = 21, kInt4 = 22;

bool hasHalfBytes(std::int32_t type) { return type == kUint4 || type == kInt4; }

std::vector<double> halfBytesIn(const Bytes& bytes, std::int32_t type, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count && i / 2 < static_cast<std::int64_t>(bytes.size()); ++i) {
    const auto pair = static_cast<int>(bytes[static_cast<std::size_t>(i / 2)]);
    const int code = i % 2 == 0 ? pair & 15 : pair >> 4;
    values.push_back(type == kInt4 && code > 7 ? code - 16 : code);
  }
  return values;
}

bool isOf8Bits(std::int32_t type) {
  return type == onnxType(ElementFormat::E4M3) || type == onnxType(ElementFormat::E5M2) || type == kE4m3Fnuz ||
         type == kE5m2Fnuz;
}

std::vector<double> codesIn(const Bytes& bytes, std::int32_t type) {
  switch (type) {
    case ::onnx::TensorProto::INT8: return integersAs<std::int8_t>(bytes);
    case ::onnx::TensorProto::UINT8: return integersAs<std::uint8_t>(bytes);
    case ::onnx::TensorProto::INT16: return integersAs<std::int16_t>(bytes);
    case ::onnx::TensorProto::UINT16: return integersAs<std::uint16_t>(bytes);
    case ::onnx::TensorProto::INT32: return integersAs<std::int32_t>(bytes);
    case kE4m3Fnuz: return unsignedZerosIn(bytes, 3, 8);
    case kE5m2Fnuz: return unsignedZerosIn(bytes, 2, 16);
    default: break;
  }
  return type == onnxType(ElementFormat::E5M2) ? minifloatsIn<E5m2>(bytes) : minifloatsIn<E4m3>(bytes);
}

/// Elements of any type that weights, their scales and their zero points have.
Result<std::vector<double>> numbersOf(const ::onnx::TensorProto& tensor, const fs::path& folder) {
  const Shape shape = shapeOf(tensor);
  const std::int64_t count = numElements(shape);
  const std::optional<DType> dtype = floatTypeOf(tensor.data_type());
  if (hasHalfBytes(tensor.data_type())) {
    const Result<Bytes> halves = elementBytes(tensor, folder);
    if (!halves) return halves.error();
    return halfBytesIn(*halves, tensor.data_type(), count);
  }
  const bool isInMessage = !dtype && tensor.int32_data_size() > 0;
  if (isInMessage && tensor.int32_data_size() == count)
    return isOf8Bits(tensor.data_type()) ? codesIn(narrowed(tensor), tensor.data_type())
                                         : std::vector<double>(tensor.int32_data().begin(), tensor.int32_data().end());
  const auto* const code = std::ranges::find(kCodes, tensor.data_type(), [](const auto& each) { return each.first; });
  if (!dtype && code == kCodes.end() && !isOf8Bits(tensor.data_type()))
    return weightError(tensor, fmt::format("its elements are {}; expected floats, or integers of 8, 16 or 32 bits.",
                                           onnxTypeName(tensor.data_type())));
  const std::int64_t width = dtype ? sizeBytes(*dtype) : code == kCodes.end() ? 1 : code->second;
  const auto size = static_cast<std::uint64_t>(count * width);
  const Result<Bytes> data = storedBytes(tensor, size, folder);
  if (!data) return data.error();
  if (data->size() != size)
    return weightError(tensor, fmt::format("expected {} bytes for {}, found {}.", size, toString(shape), data->size()));
  if (!dtype) return codesIn(*data, tensor.data_type());
  std::vector<double> values(static_cast<std::size_t>(count));
  decode(data->data(), *dtype, values);
  return values;
}

/// One scale for all, or one for each index of the axis, or for each block along it.
Result<std::vector<double>> dequantized(const FoundWeight& weight, const fs::path& folder) {
  const WeightCodes& codes = *weight.codes;
  Result<std::vector<double>> values = numbersOf(*weight.constant, folder);
  const Result<std::vector<double>> scales = numbersOf(*codes.scale, folder);
  Result<std::vector<double>> zeros = std::vector<double>{0.0};
  if (codes.zeroPoint) zeros = numbersOf(*codes.zeroPoint, folder);
  for (const auto* const read : {&std::as_const(values), &scales, &std::as_const(zeros)})
    if (!*read) return read->error();
  const Shape shape = shapeOf(*weight.constant);
  const std::int64_t expected = numScales(shape, codes.axis, codes.blockSize);
  for (const std::size_t count : {scales->size(), zeros->size()})
    if (count != 1 && static_cast<std::int64_t>(count) != expected)
      return weightError(*weight.constant,
                         fmt::format("it has {} scales or zero points, but expected 1 or {}.", count, expected));
  for (std::size_t i = 0; i < values->size(); ++i) {
    const std::size_t index = scaleIndex(shape, static_cast<std::int64_t>(i), codes.axis, codes.blockSize);
    (*values)[i] -= (*zeros)[zeros->size() == 1 ? 0 : index];
    (*values)[i] *= (*scales)[scales->size() == 1 ? 0 : index];
  }
  return values;
}

std::vector<double> transposed(const std::vector<double>& values, std::int64_t rows, std::int64_t cols) {
  std::vector<double> result(values.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col)
      result[static_cast<std::size_t>(col * rows + row)] = values[static_cast<std::size_t>(row * cols + col)];
  return result;
}

/// Elements that are computed: dequantized, times a factor, or one for all.
Result<Tensor> computedWeight(const FoundWeight& weight, const TensorSpec& spec, const fs::path& folder) {
  const Result<Shape> shape = shapeInOp(weight, spec);
  if (!shape) return shape.error();
  Result<std::vector<double>> values = weight.codes ? dequantized(weight, folder) : numbersOf(*weight.constant, folder);
  if (!values) return values.error();
  if (weight.isTransposed) values = transposed(*values, weight.constant->dims(0), weight.constant->dims(1));
  for (double& value : *values) value *= weight.factor;
  if (shape->empty()) values->resize(static_cast<std::size_t>(spec.numElements()), values->front());
  return Tensor::fromDoubles(spec, *values);
}

/// A gate takes the halves of the columns of such a layer in the other order.
Result<Tensor> readSwapped(FoundWeight weight, const TensorSpec& spec, const fs::path& folder) {
  weight.areHalvesSwapped = false;
  Result<Tensor> read = readWeight(weight, spec, folder);
  if (read) std::ranges::rotate(read->data, read->data.begin() + static_cast<std::ptrdiff_t>(read->data.size() / 2));
  return read;
}

Result<Tensor> readStacked(const FoundWeight& weight, const TensorSpec& spec, const fs::path& folder) {
  TensorSpec half = spec;
  half.shape[0] /= 2;
  Tensor whole{.spec = spec, .data = {}};
  FoundWeight above = weight;
  above.below = nullptr;
  for (const FoundWeight* const each : {&std::as_const(above), weight.below.get()}) {
    const Result<Tensor> part = readWeight(*each, half, folder);
    if (!part) return part.error();
    whole.data.insert(whole.data.end(), part->data.begin(), part->data.end());
  }
  return whole;
}

}  // namespace

Result<Tensor> readWeight(const FoundWeight& weight, const TensorSpec& spec, const std::filesystem::path& folder) {
  if (weight.areHalvesSwapped) return readSwapped(weight, spec, folder);
  if (weight.below) return readStacked(weight, spec, folder);
  if (!weight.constant && weight.fill == 0.0) return Tensor::zeros(spec);
  if (!weight.constant)
    return Tensor::fromDoubles(spec, std::vector<double>(static_cast<std::size_t>(spec.numElements()), weight.fill));
  if (weight.codes || weight.factor != 1.0 || weight.isSpread) return computedWeight(weight, spec, folder);
  const ::onnx::TensorProto& constant = *weight.constant;
  const std::optional<DType> dtype = floatTypeOf(constant.data_type());
  if (!dtype)
    return weightError(
        constant, fmt::format("its elements are {}, expected f32, f16 or bf16.", onnxTypeName(constant.data_type())));
  const Result<Shape> shape = shapeInOp(weight, spec);
  if (!shape) return shape.error();
  Tensor tensor{.spec = {.dtype = *dtype, .shape = *shape}, .data = {}};
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

std::int64_t elementSize(std::int32_t type) {
  switch (type) {
    case ::onnx::TensorProto::FLOAT:
    case ::onnx::TensorProto::INT32:
    case ::onnx::TensorProto::UINT32: return 4;
    case ::onnx::TensorProto::INT64:
    case ::onnx::TensorProto::UINT64:
    case ::onnx::TensorProto::DOUBLE: return 8;
    case ::onnx::TensorProto::FLOAT16:
    case ::onnx::TensorProto::BFLOAT16:
    case ::onnx::TensorProto::INT16:
    case ::onnx::TensorProto::UINT16: return 2;
    case ::onnx::TensorProto::BOOL:
    case ::onnx::TensorProto::INT8:
    case ::onnx::TensorProto::UINT8: return 1;
    default: return isOf8Bits(type) ? 1 : 0;
  }
}

std::int64_t sizeInBytes(const ::onnx::TensorProto& tensor) {
  const std::int64_t count = numElements(shapeOf(tensor));
  return hasHalfBytes(tensor.data_type()) ? (count + 1) / 2 : count * elementSize(tensor.data_type());
}

std::int64_t numScales(const Shape& shape, std::int64_t axis, std::int64_t blockSize) {
  if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size())) return 1;
  const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
  if (blockSize <= 0) return extent;
  return extent == 0 ? 0 : numElements(shape) / extent * ((extent - 1) / blockSize + 1);
}

std::size_t scaleIndex(const Shape& shape, std::int64_t element, std::int64_t axis, std::int64_t blockSize) {
  std::int64_t inner = 1, extent = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<std::int64_t>(i) == axis) extent = shape[i];
    if (static_cast<std::int64_t>(i) > axis) inner *= shape[i];
  }
  const std::int64_t index = element / inner % extent;
  if (blockSize <= 0) return static_cast<std::size_t>(index);
  const std::int64_t numBlocks = (extent - 1) / blockSize + 1, outer = element / inner / extent;
  return static_cast<std::size_t>((outer * numBlocks + index / blockSize) * inner + element % inner);
}

std::optional<std::vector<double>> integersIn(const ::onnx::TensorProto& tensor, const std::vector<std::byte>& bytes) {
  const std::int32_t type = tensor.data_type();
  if (hasHalfBytes(type)) return halfBytesIn(bytes, type, numElements(shapeOf(tensor)));
  const bool isInteger = std::ranges::find(kCodes, type, [](const auto& each) { return each.first; }) != kCodes.end();
  return isInteger ? std::optional(codesIn(bytes, type)) : std::nullopt;
}

/// Smaller elements than 32 bits have the message's list of int32, each in one.
Result<std::vector<std::byte>> elementBytes(const ::onnx::TensorProto& constant, const std::filesystem::path& folder) {
  const std::int64_t width = hasHalfBytes(constant.data_type()) ? 1 : elementSize(constant.data_type());
  if (width == 0) return weightError(constant, "its elements have no fixed size, such as strings.");
  const auto size = static_cast<std::uint64_t>(sizeInBytes(constant));
  Bytes bytes;
  if (constant.int64_data_size() > 0)
    bytes = bytesOf(constant.int64_data().data(), static_cast<std::size_t>(constant.int64_data_size()));
  else if (constant.uint64_data_size() > 0 && width == 8)
    bytes = bytesOf(constant.uint64_data().data(), static_cast<std::size_t>(constant.uint64_data_size()));
  else if (constant.double_data_size() > 0)
    bytes = bytesOf(constant.double_data().data(), static_cast<std::size_t>(constant.double_data_size()));
  else if (constant.int32_data_size() > 0)
    for (const std::int32_t value : constant.int32_data()) {
      const Bytes each = bytesOf(&value, 1);
      bytes.insert(bytes.end(), each.begin(), each.begin() + std::min<std::ptrdiff_t>(width, 4));
    }
  else {
    Result<Bytes> stored = storedBytes(constant, size, folder);
    if (!stored) return stored;
    bytes = std::move(*stored);
  }
  if (bytes.size() == size) return bytes;
  return weightError(constant, fmt::format("expected {} bytes, found {}.", size, bytes.size()));
}

Result<ReadWeights> readWeights(const Graph& graph, const WeightFinder& source) {
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
