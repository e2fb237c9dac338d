// Writing .npy files.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/npy.h"

#include "core/support/atomic_file.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace fuseline {

static_assert(std::endian::native == std::endian::little, "tensor data is stored little-endian");

namespace {

/// The magic word, the version and the header's length.
constexpr std::size_t kPreludeBytes = 10;
/// Alignment of the data, as in NumPy.
constexpr std::size_t kNpyAlignment = 64;
/// Elements that are widened at a time.
constexpr std::size_t kChunk = 4096;

std::string_view typeText(DType dtype) {
  switch (npyDType(dtype)) {
    case DType::F16: return "<f2";
    case DType::I64: return "<i8";
    case DType::U8: return "|u1";
    default: return "<f4";
  }
}

/// A Python tuple: "()", "(3,)", "(2, 3,)".
std::string tupleText(const Shape& shape) {
  std::string text = "(";
  for (const std::int64_t extent : shape) text += fmt::format("{}{},", text.size() > 1 ? " " : "", extent);
  return text + ")";
}

std::string npyHeader(const TensorSpec& spec) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", typeText(spec.dtype),
                                 tupleText(spec.shape));
  const std::size_t end = kPreludeBytes + text.size() + 1;
  text.append((kNpyAlignment - end % kNpyAlignment) % kNpyAlignment, ' ');
  return text + "\n";
}

void writeBytes(std::ostream& out, std::span<const std::byte> bytes) {
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void writeWidened(std::ostream& out, const Tensor& tensor) {
  const auto size = static_cast<std::size_t>(sizeBytes(tensor.spec.dtype));
  std::vector<double> values;
  std::vector<std::byte> wide;
  for (std::size_t begin = 0; begin < tensor.data.size(); begin += kChunk * size) {
    values.resize(std::min(kChunk, (tensor.data.size() - begin) / size));
    wide.resize(values.size() * sizeof(float));
    decode(tensor.data.data() + begin, tensor.spec.dtype, values);
    encode(values, DType::F32, wide.data());
    writeBytes(out, wide);
  }
}

}  // namespace

Result<void> writeNpy(const std::filesystem::path& path, const Tensor& tensor) {
  const std::string header = npyHeader(tensor.spec);
  if (header.size() > std::numeric_limits<std::uint16_t>::max())
    return Error{fmt::format("{}: a .npy file of version 1.0 cannot store a tensor with {} dimensions.", path.string(),
                             tensor.spec.shape.size())};
  return writeFileAtomically(path, [&](std::ostream& out) {
    const auto length = static_cast<std::uint16_t>(header.size());
    out.write("\x93NUMPY\x01\x00", 8);
    out.write(reinterpret_cast<const char*>(&length), sizeof(length));
    out << header;
    npyDType(tensor.spec.dtype) == tensor.spec.dtype ? writeBytes(out, tensor.data) : writeWidened(out, tensor);
  });
}

}  // namespace fuseline
