// Files of other programs are named, and those of Fuseline are not.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/foreign_file.h"

#include "core/support/text.h"

#include <string>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace std::string_literals;

struct Sample {
  std::string bytes;
  const char* name;
};

TEST(ForeignFile, IsNamedByItsFirstBytes) {
  const Sample samples[] = {
      {"\x10\0\0\0\0\0\0\0{\"w\":{}}        "s, "a safetensors file"},
      {"PK\x03\x04......archive/data.pkl"s, "a PyTorch checkpoint"},
      {"PK\x03\x04......a.npy"s, "an archive of NumPy arrays"},
      {"PK\x03\x04......notes.txt"s, "a compressed file or an archive"},
      {"\x80\x02}q\0."s, "a Python pickle"},
      {"GGUF\x03\0\0\0"s, "a GGUF file"},
      {"\x1f\x8b\x08\0"s, "a compressed file or an archive"},
      {"\x93NUMPY\x01\0"s, "a NumPy array"},
      {"\xff\xd8\xff\xe0JFIF"s, "a picture"},
      {"\x08\x0a\x12\x07pytorch"s, "an ONNX model"},
      {R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64})", "the configuration of a Hugging Face model"},
      {R"({"metadata": {}, "weight_map": {"w": "model-00001.safetensors"}})", "the index of weights"},
      {"", "an empty file"},
  };
  for (const Sample& sample : samples) {
    const std::optional<std::string> text = foreignFileText(std::string_view(sample.bytes));
    ASSERT_TRUE(text) << sample.name;
    EXPECT_TRUE(text->starts_with("This is "s + sample.name)) << *text;
  }
}

TEST(ForeignFile, IsNoneOfFuseline) {
  for (const char* text :
       {R"({"format": "fuseline-pipeline", "model_type": 1})", R"({"pipeline": {"architectures": 1}})", "{",
        "some words", "<svg/>", "# a script\nimport torch\n"})
    EXPECT_FALSE(foreignFileText(std::string_view(text))) << text;
}

TEST(ShortestReal, IsWhatWasMeantByAFloat) {
  EXPECT_EQ(shortestReal(static_cast<double>(1e-5F)), 1e-5);
  EXPECT_EQ(shortestReal(static_cast<double>(0.1F)), 0.1);
  EXPECT_EQ(shortestReal(0.1), 0.1);
  EXPECT_EQ(shortestReal(0.5), 0.5);
  EXPECT_EQ(shortestReal(1e300), 1e300);
}

}  // namespace
}  // namespace fuseline
