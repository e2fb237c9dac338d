// .npy files, read by a reader that was written from NumPy's description of the format.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/npy.h"

#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <stdexcept>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using testing::TemporaryFolder;

struct NpyFile {
  std::string type;
  Shape shape;
  std::string data;
  std::size_t dataStart = 0;
};

std::string bytesOf(const Tensor& tensor) {
  const TemporaryFolder folder;
  const Result<void> written = writeNpy(folder / "t.npy", tensor);
  if (!written) throw std::runtime_error(written.error().message);
  std::ifstream in(folder / "t.npy", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Throws where the bytes are no file of version 1.0 in C order.
NpyFile parse(const std::string& bytes) {
  if (bytes.substr(0, 8) != std::string("\x93NUMPY\x01\x00", 8)) throw std::runtime_error("another magic word");
  const auto length =
      static_cast<std::size_t>(static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]));
  const std::string header = bytes.substr(10, length);
  static const std::regex kLiteral(
      R"(\{'descr': '([^']+)', 'fortran_order': False, 'shape': \(((?:\d+, ?)*)\), \} *\n)");
  std::smatch match;
  if (!std::regex_match(header, match, kLiteral)) throw std::runtime_error("no such header: " + header);
  NpyFile file{.type = match[1], .data = bytes.substr(10 + length), .dataStart = 10 + length};
  static const std::regex kNumber(R"(\d+)");
  const std::string extents = match[2];
  for (std::sregex_iterator it(extents.begin(), extents.end(), kNumber); it != std::sregex_iterator(); ++it)
    file.shape.push_back(std::stoll(it->str()));
  return file;
}

template <class T>
std::vector<double> numbersAs(const std::string& data) {
  std::vector<T> numbers(data.size() / sizeof(T));
  std::ranges::copy(data, reinterpret_cast<char*>(numbers.data()));
  return {numbers.begin(), numbers.end()};
}

std::vector<std::byte> bytesIn(const std::string& text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

/// "(3,)" with the comma that makes a tuple of it, spaces up to a multiple of 64, a newline.
TEST(Npy, HeaderIsThatOfTheFormat) {
  const std::string bytes = bytesOf(Tensor::fromDoubles({DType::F32, {3}}, std::array{1.0, 2.0, -3.0}));
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  EXPECT_EQ(bytes.substr(10, header.size()), header);
  const NpyFile file = parse(bytes);
  EXPECT_EQ(file.dataStart % 64, 0U);
  EXPECT_EQ(bytes[file.dataStart - 1], '\n');
  EXPECT_EQ(numbersAs<float>(file.data), (std::vector{1.0, 2.0, -3.0}));
}

TEST(Npy, AScalarHasAnEmptyShape) {
  const NpyFile file = parse(bytesOf(Tensor::fromDoubles({DType::F32, {}}, std::array{7.0})));
  EXPECT_TRUE(file.shape.empty());
  EXPECT_EQ(numbersAs<float>(file.data), std::vector{7.0});
}

TEST(Npy, CountsStayIntegers) {
  const NpyFile file = parse(bytesOf(Tensor::fromDoubles({DType::I64, {2}}, std::array{5.0, -9.0})));
  EXPECT_EQ(file.type, "<i8");
  EXPECT_EQ(numbersAs<std::int64_t>(file.data), (std::vector{5.0, -9.0}));
}

/// 0x3FC0 is 1.5, 0xFF80 minus infinity, 0x7FC0 NaN.
TEST(Npy, Bf16BecomesFloat32) {
  Tensor tensor = Tensor::zeros({DType::BF16, {1, 3}});
  const std::array<std::uint16_t, 3> codes = {0x3FC0, 0xFF80, 0x7FC0};
  std::memcpy(tensor.data.data(), codes.data(), sizeof(codes));
  const NpyFile file = parse(bytesOf(tensor));
  EXPECT_EQ(file.type, "<f4");
  EXPECT_EQ(file.shape, (Shape{1, 3}));
  const std::vector<double> numbers = numbersAs<float>(file.data);
  ASSERT_EQ(numbers.size(), 3U);
  EXPECT_EQ(numbers[0], 1.5);
  EXPECT_EQ(numbers[1], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(numbers[2]));
}

/// More elements than are widened at a time.
TEST(Npy, KeepsShapeAndEveryElement) {
  EXPECT_TRUE(rc::check([] {
    TensorSpec spec{.dtype = *rc::gen::element(DType::F32, DType::F16, DType::BF16, DType::E4M3),
                    .shape = *rc::gen::resize(4, rc::gen::container<Shape>(rc::gen::inRange<std::int64_t>(0, 9)))};
    if (*rc::gen::inRange(0, 4) == 0) spec.shape = {3, 4099};
    std::vector<double> values;
    for (std::int64_t i = 0; i < spec.numElements(); ++i) values.push_back(static_cast<double>(i % 17 - 8));
    const NpyFile file = parse(bytesOf(Tensor::fromDoubles(spec, values)));
    RC_ASSERT(file.shape == spec.shape);
    if (spec.dtype == DType::F16) {
      const Tensor read{.spec = spec, .data = bytesIn(file.data)};
      RC_ASSERT(file.type == "<f2");
      RC_ASSERT(read.toDoubles() == values);
    } else {
      RC_ASSERT(file.type == "<f4");
      RC_ASSERT(numbersAs<float>(file.data) == values);
    }
  }));
}

TEST(Npy, SaysWhereItCannotWrite) {
  const Result<void> written = writeNpy("/no/such/folder/t.npy", Tensor::zeros({DType::F32, {1}}));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/no/such/folder"), std::string::npos) << written.error().message;
}

}  // namespace
}  // namespace fuseline
