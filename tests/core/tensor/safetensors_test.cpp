// Safetensors files: bit-exact round trips, and files that lie.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/safetensors.h"

#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using testing::TemporaryFolder;

std::string readAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void writeAll(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A file from its parts, as the format says.
std::string fileOf(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

Result<NamedTensors> readFrom(const std::string& bytes) {
  const TemporaryFolder folder;
  writeAll(folder / "t.safetensors", bytes);
  return readSafetensors(folder / "t.safetensors");
}

/// The sentence after the path, or "no error".
std::string errorOf(const std::string& bytes) {
  const Result<NamedTensors> read = readFrom(bytes);
  if (read) return "no error";
  const std::string marker = "t.safetensors: ";
  return read.error().message.substr(read.error().message.find(marker) + marker.size());
}

Tensor arbitraryTensor() {
  Tensor tensor;
  tensor.spec.dtype = *rc::gen::element(DType::F32, DType::F16, DType::BF16, DType::I64, DType::E4M3, DType::U8);
  tensor.spec.shape = *rc::gen::resize(4, rc::gen::container<Shape>(rc::gen::inRange<std::int64_t>(0, 5)));
  const auto size = static_cast<std::size_t>(tensor.spec.bytes());
  for (const char byte : *rc::gen::container<std::string>(size, rc::gen::arbitrary<char>()))
    tensor.data.push_back(static_cast<std::byte>(byte));
  return tensor;
}

NamedTensors arbitraryTensors() {
  const auto names = *rc::gen::container<std::set<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("abc.0/@:\"\\\n")))));
  NamedTensors tensors;
  for (const std::string& name : names) tensors.emplace_back(name, arbitraryTensor());
  return tensors;
}

void assertSame(const NamedTensors& actual, const NamedTensors& expected) {
  RC_ASSERT(actual.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    RC_ASSERT(actual[i].first == expected[i].first);
    RC_ASSERT(actual[i].second.spec == expected[i].second.spec);
    RC_ASSERT(actual[i].second.data == expected[i].second.data);
  }
}

/// A program that maps the file finds each tensor at the offset in the index.
TEST(Safetensors, IndexSaysWhereTheDataIs) {
  EXPECT_TRUE(rc::check([] {
    const TemporaryFolder folder;
    const NamedTensors tensors = arbitraryTensors();
    RC_ASSERT(static_cast<bool>(writeSafetensors(folder / "t.safetensors", tensors)));
    const std::string bytes = readAll(folder / "t.safetensors");
    const auto index = safetensorsIndex(folder / "t.safetensors");
    RC_ASSERT(static_cast<bool>(index));
    RC_ASSERT(index->size() == tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const StoredTensor& stored = (*index)[i];
      const std::vector<std::byte>& data = tensors[i].second.data;
      RC_ASSERT(stored.name == tensors[i].first);
      RC_ASSERT(stored.spec == tensors[i].second.spec);
      RC_ASSERT(stored.end - stored.begin == data.size());
      RC_ASSERT(stored.end <= bytes.size());
      const auto* const first = reinterpret_cast<const std::byte*>(bytes.data()) + stored.begin;
      RC_ASSERT(std::equal(data.begin(), data.end(), first));
    }
  }));
}

TEST(Safetensors, RoundTripIsBitExact) {
  EXPECT_TRUE(rc::check([] {
    const TemporaryFolder folder;
    const NamedTensors tensors = arbitraryTensors();
    RC_ASSERT(writeSafetensors(folder / "t.safetensors", tensors).hasValue());
    const Result<NamedTensors> read = readSafetensors(folder / "t.safetensors");
    RC_ASSERT(read.hasValue());
    assertSame(*read, tensors);
  }));
}

// A tensor of 2-byte elements written first would put the 4-byte elements after it on an odd address.
TEST(Safetensors, AlignsTheDataOfWideElements) {
  const TemporaryFolder folder;
  const NamedTensors tensors = {{"odd", Tensor::zeros({.dtype = DType::BF16, .shape = {3}})},
                                {"wide", Tensor::fromDoubles({.dtype = DType::F32, .shape = {1}}, std::vector{2.5})}};
  ASSERT_TRUE(writeSafetensors(folder / "t", tensors));
  const std::string bytes = readAll(folder / "t");
  const std::string pattern("\x00\x00\x20\x40", 4);  // 2.5f
  EXPECT_EQ(bytes.find(pattern, 8) % 4, 0u);
  EXPECT_EQ(bytes.find(pattern, 8), bytes.size() - 10);
}

// The bytes follow the format's specification by hand: 8-byte length, JSON, data.
TEST(Safetensors, ReadsAFileWrittenByHand) {
  const std::string header = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},)"
                             R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}  )";
  const std::string data("\x00\x00\x20\x40\x80\x3f\x00\xc0", 8);  // 2.5f; 1 and -2 in bf16
  const Result<NamedTensors> read = readFrom(fileOf(header, data));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].first, "b");
  EXPECT_EQ((*read)[0].second.toDoubles(), (std::vector{1.0, -2.0}));
  EXPECT_EQ((*read)[1].second.spec, (TensorSpec{.dtype = DType::F32, .shape = {}}));
  EXPECT_EQ((*read)[1].second.toDoubles(), (std::vector{2.5}));
}

// PyTorch's default for integers.
TEST(Safetensors, ReadsIntegers) {
  const std::string header = R"({"sizes":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}   )";
  const std::string data("\x05\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", 16);  // 5 and -1
  const Result<NamedTensors> read = readFrom(fileOf(header, data));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->front().second.spec, (TensorSpec{.dtype = DType::I64, .shape = {2}}));
  EXPECT_EQ(read->front().second.toDoubles(), (std::vector{5.0, -1.0}));
}

std::string headerWith(const std::string& entry) { return R"({"w":)" + entry + "}"; }

TEST(Safetensors, RefusesWhatIsNoSafetensorsFile) {
  EXPECT_EQ(errorOf(""), "the file has 0 bytes; a safetensors file has at least 8.");
  EXPECT_EQ(errorOf("1234567"), "the file has 7 bytes; a safetensors file has at least 8.");
  EXPECT_EQ(errorOf(std::string(8, '\xff')),
            "the header claims 18446744073709551615 bytes, but the file has 8; is this a safetensors file?");
  EXPECT_EQ(errorOf(fileOf("{", "")), "the header is not valid JSON; is this a safetensors file?");
  EXPECT_EQ(errorOf(fileOf("[]", "")), "the header is not a JSON object; is this a safetensors file?");
}

TEST(Safetensors, RefusesDuplicateNames) {
  const std::string entry = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(errorOf(fileOf(R"({"w":)" + entry + R"(,"w":)" + entry + "}", "")), "two tensors are named 'w'.");
}

TEST(Safetensors, RefusesUnknownDtypes) {
  EXPECT_EQ(errorOf(fileOf(headerWith(R"({"dtype":"F64","shape":[1],"data_offsets":[0,8]})"), std::string(8, 'x'))),
            "tensor 'w' has the dtype F64. Valid values: F32, F16, BF16, F8_E4M3, I64, U8.");
  EXPECT_EQ(errorOf(fileOf(headerWith(R"({"shape":[1],"data_offsets":[0,8]})"), std::string(8, 'x'))),
            "tensor 'w' has the dtype null. Valid values: F32, F16, BF16, F8_E4M3, I64, U8.");
}

TEST(Safetensors, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(errorOf(fileOf(headerWith(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,20]})"), std::string(20, 'x'))),
            "tensor 'w' is [2, 3] f32, but has 20 bytes of data.");
  EXPECT_EQ(errorOf(fileOf(headerWith(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"), std::string(4, 'x'))),
            "tensor 'w' is at bytes 0 to 8, but the data has 4 bytes.");
  EXPECT_EQ(errorOf(fileOf(headerWith(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), std::string(4, 'x'))),
            "tensor 'w' is at bytes 4 to 0, but the data has 4 bytes.");
}

TEST(Safetensors, RefusesExtentsWhoseProductOverflows) {
  for (const char* shape : {"[4294967296,4294967296]", "[4611686018427387904,4]", "[4611686018427387904,4,0]"})
    EXPECT_NE(errorOf(fileOf(
                  headerWith(std::string(R"({"dtype":"F32","shape":)") + shape + R"(,"data_offsets":[0,0]})"), "")),
              "no error")
        << shape;
}

TEST(Safetensors, RefusesMalformedFields) {
  EXPECT_EQ(errorOf(fileOf(headerWith("3"), "")), "tensor 'w' is described by number.");
  for (const char* shape : {"-1", "[-1]", "[1.5]", "[\"1\"]", "[18446744073709551615]", "{}"})
    EXPECT_EQ(errorOf(fileOf(
                  headerWith(std::string(R"({"dtype":"F32","shape":)") + shape + R"(,"data_offsets":[0,0]})"), "")),
              "tensor 'w': shape is not a list of sizes.")
        << shape;
  for (const char* offsets : {"0", "[0]", "[0,0,0]", "[-4,0]", "[0.0,0]"})
    EXPECT_EQ(
        errorOf(fileOf(headerWith(std::string(R"({"dtype":"F32","shape":[0],"data_offsets":)") + offsets + "}"), "")),
        "tensor 'w': data_offsets is not a pair of positions.")
        << offsets;
}

TEST(Safetensors, RefusesOverlapsHolesAndLeftovers) {
  const auto twoTensors = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + first +
           R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(errorOf(fileOf(twoTensors("[0,4]", "[2,6]"), std::string(6, 'x'))),
            "tensor 'b' begins at byte 2, but the one before it ends at byte 4.");
  EXPECT_EQ(errorOf(fileOf(twoTensors("[0,4]", "[6,10]"), std::string(10, 'x'))),
            "tensor 'b' begins at byte 6, but the one before it ends at byte 4.");
  EXPECT_EQ(errorOf(fileOf(twoTensors("[0,4]", "[4,8]"), std::string(9, 'x'))),
            "the tensors end at byte 8, but the data has 9 bytes.");
}

TEST(Safetensors, SurvivesDeeplyNestedHeaders) {
  const std::string nest = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_EQ(errorOf(fileOf(headerWith(nest), "")), "tensor 'w' is described by array.");
  EXPECT_EQ(errorOf(fileOf(headerWith(R"({"dtype":)" + nest + "}"), "")),
            "tensor 'w' has the dtype array. Valid values: F32, F16, BF16, F8_E4M3, I64, U8.");
}

TEST(Safetensors, ShortensAbsurdNamesInItsErrors) {
  const std::string name(1'000'000, 'n');
  EXPECT_EQ(errorOf(fileOf("{\"" + name + "\":3}", "")), "tensor '" + name.substr(0, 80) + "' is described by number.");
}

TEST(Safetensors, SaysThatAFileIsMissing) {
  const Result<NamedTensors> read = readSafetensors("/nonexistent/t.safetensors");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "Cannot read /nonexistent/t.safetensors: No such file or directory.");
}

TEST(Safetensors, RefusesToWriteWhatCouldNotBeReadBack) {
  const TemporaryFolder folder;
  const Tensor tensor = Tensor::zeros({.shape = {1}});
  Tensor truncated = tensor;
  truncated.data.pop_back();
  for (const NamedTensors& tensors : {NamedTensors{{"a", tensor}, {"a", tensor}}, NamedTensors{{"\xff", tensor}},
                                      NamedTensors{{"__metadata__", tensor}}, NamedTensors{{"a", truncated}}})
    EXPECT_FALSE(writeSafetensors(folder / "t", tensors));
  EXPECT_FALSE(std::filesystem::exists(folder / "t"));
}

/// A good file with some bytes changed, cut off or inserted.
std::string mutatedFile() {
  const TemporaryFolder folder;
  RC_ASSERT(writeSafetensors(folder / "t", arbitraryTensors()).hasValue());
  std::string bytes = readAll(folder / "t");
  const auto numChanges = *rc::gen::inRange(1, 5);
  for (int change = 0; change < numChanges; ++change) {
    const auto position = *rc::gen::inRange<std::size_t>(0, bytes.size());
    const char byte =
        *rc::gen::oneOf(rc::gen::arbitrary<char>(), rc::gen::elementOf(std::string("0123456789[]{}\",:")));
    switch (*rc::gen::inRange(0, 4)) {
      case 0: bytes.resize(position); break;
      case 1: bytes.insert(position, 1, byte); break;
      default: bytes[position] = byte;
    }
    if (bytes.empty()) break;
  }
  return bytes;
}

TEST(Safetensors, EveryMutatedFileIsReadConsistentlyOrRefusedWithItsPath) {
  EXPECT_TRUE(rc::check([] {
    const Result<NamedTensors> read = readFrom(mutatedFile());
    if (!read) {
      RC_ASSERT(read.error().message.find("t.safetensors: ") != std::string::npos);
      return;
    }
    for (const auto& [name, tensor] : *read)
      RC_ASSERT(static_cast<std::int64_t>(tensor.data.size()) == tensor.spec.bytes());
  }));
}

}  // namespace
}  // namespace fuseline
