// Weights of ONNX models: every form that elements have in a file, and those of exported models come back bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_weights.h"
#include "core/edit/apply_edit.h"
#include "core/export/onnx/onnx_import.h"
#include "core/export/pipeline_exporter.h"
#include "core/lowering/lowering.h"
#include "core/runtime/bindings.h"
#include "tests/core/export/onnx_models.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::testing {
namespace {

// ---- whole models

PipelineDocument smallTemplate(const char* name) {
  PipelineDocument document = parseDocument(findTemplate(name)->text).document;
  for (const auto& [symbol, value] : std::vector<std::pair<std::string, int>>{{"M", 32}, {"H", 32}, {"F", 48}})
    if (document.symbols().contains(symbol)) (void)applyEdit(document, SetSymbol{.name = symbol, .value = value});
  return document;
}

NamedTensors initialParameters(const PipelineDocument& document) {
  const LoweredGraph lowered = lower(document, {.pass = ExecutionMode::Inference});
  return parametersOf(lowered.graph, *makeBindings(lowered.graph, 0));
}

std::string exported(const PipelineDocument& document) {
  const AnalysisOptions options;
  const Analysis analysis = analyze(document, options);
  const Result<PipelineText> text = findPipelineExporter("onnx")->write(
      {.name = "sample", .document = document, .options = options, .analysis = analysis});
  if (!text) throw std::invalid_argument(text.error().message);
  return *contentOf(*text);
}

std::vector<std::string> namesOf(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

/// But for the names of ops.
void expectSame(const NamedTensors& found, const NamedTensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].second.spec, expected[i].second.spec) << found[i].first;
    EXPECT_EQ(found[i].second.data, expected[i].second.data) << found[i].first;
  }
}

TEST(OnnxWeights, ComeBackAsTheyWereExported) {
  for (const char* name : {"linear-bias", "llama-mlp", "gpt-mlp", "layernorm-mlp", "transformer-stack"}) {
    const PipelineDocument document = smallTemplate(name);
    const Result<ImportedPipeline> imported =
        importOnnxModel(exported(document), "sample.onnx", {.takesWeights = true});
    ASSERT_TRUE(imported) << name << ": " << imported.error().message;
    EXPECT_EQ(namesOf(imported->weights), namesOf(initialParameters(document)));
    expectSame(imported->weights, initialParameters(document));
  }
}

/// Found in the graph alone, by the nodes that use them.
TEST(OnnxWeights, AreFoundInTheGraphOfAnotherProgram) {
  for (const char* name : {"linear-bias", "llama-mlp", "gpt-mlp", "layernorm-mlp"}) {
    const PipelineDocument document = smallTemplate(name);
    const Result<ImportedPipeline> imported =
        importOnnxModel(withoutMetadata(exported(document)), "sample.onnx", {.takesWeights = true});
    ASSERT_TRUE(imported) << name << ": " << imported.error().message;
    EXPECT_EQ(namesOf(imported->weights), namesOf(initialParameters(imported->document)));
    expectSame(imported->weights, initialParameters(document));
    EXPECT_FALSE(has(imported->notes.empty() ? "" : imported->notes.back(), "initial")) << imported->notes.back();
  }
}

TEST(OnnxWeights, StayWhereNobodyAsksForThem) {
  const Result<ImportedPipeline> imported = importOnnxModel(withoutMetadata(exported(smallTemplate("gpt-mlp"))), "a");
  ASSERT_TRUE(imported);
  EXPECT_TRUE(imported->weights.empty());
  EXPECT_TRUE(has(imported->notes.back(), "Weights are random"));
}

// ---- one weight

constexpr int kFloat32 = 1, kInt64 = 7, kHalf = 10, kBfloat16 = 16;

::onnx::TensorProto constant(int type, const Shape& shape) {
  ::onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(type);
  for (const std::int64_t extent : shape) tensor.add_dims(extent);
  return tensor;
}

std::string rawOf(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::vector<double> valuesOf(const Result<Tensor>& tensor) {
  return tensor ? tensor->toDoubles() : throw std::invalid_argument(tensor.error().message);
}

using Values = std::vector<double>;

TEST(OnnxWeight, IsReadFromEveryListOfNumbers) {
  ::onnx::TensorProto raw = constant(kFloat32, {3});
  raw.set_raw_data(rawOf({1.0F, -2.5F, 3e-9F}));
  EXPECT_EQ(valuesOf(readWeight({"bias", &raw}, {DType::F32, {3}}, {})), (Values{1.0, -2.5, 3e-9F}));

  ::onnx::TensorProto listed = constant(kFloat32, {2});
  listed.add_float_data(0.25F);
  listed.add_float_data(7);
  EXPECT_EQ(valuesOf(readWeight({"bias", &listed}, {DType::F32, {2}}, {})), (Values{0.25, 7}));

  // 1.5 and -2: IEEE 754 binary16 0x3E00, 0xC000; bfloat16 0x3FC0, 0xC000.
  for (const auto& [type, dtype, first] : {std::tuple(kHalf, DType::F16, 0x3E00), {kBfloat16, DType::BF16, 0x3FC0}}) {
    ::onnx::TensorProto halves = constant(type, {2});
    halves.add_int32_data(first);
    halves.add_int32_data(0xC000);
    EXPECT_EQ(valuesOf(readWeight({"bias", &halves}, {dtype, {2}}, {})), (Values{1.5, -2}));
  }
}

// 1, the largest number, and the smallest: ONNX, "Float stored in 8 bits".
TEST(OnnxWeight, IsDecodedByTheBiasOfItsFormat) {
  const auto decoded = [](int type) {
    ::onnx::TensorProto codes = constant(type, {4}), scale = constant(kFloat32, {});
    codes.set_raw_data(std::string("\x40\x7F\x01\xC0", 4));
    scale.add_float_data(1.0F);
    const FoundWeight weight{.parameter = "weight", .constant = &codes, .codes = WeightCodes{&scale, nullptr, 0}};
    return valuesOf(readWeight(weight, {DType::F32, {4}}, {}));
  };
  EXPECT_EQ(decoded(18), (Values{1, 240, 0x1p-10, -1}));
  EXPECT_EQ(decoded(20), (Values{1, 57344, 0x1p-17, -1}));
  ::onnx::TensorProto codes = constant(::onnx::TensorProto::STRING, {4}), scale = constant(kFloat32, {});
  scale.add_float_data(1.0F);
  EXPECT_FALSE(readWeight({.constant = &codes, .codes = WeightCodes{&scale, nullptr, 0}}, {DType::F32, {4}}, {}));
}

TEST(OnnxWeight, IsRoundedOnceToTheDtypeOfTheOp) {
  ::onnx::TensorProto raw = constant(kFloat32, {2});
  raw.set_raw_data(rawOf({1.00390625F, 1.01171875F}));  // half of bf16's step of 2^-7 above 1, and one and a half
  EXPECT_EQ(valuesOf(readWeight({"bias", &raw}, {DType::BF16, {2}}, {})), (Values{1.0, 1.015625})) << "ties to even";
}

TEST(OnnxWeight, IsTurnedWhereTheModelHasItTheOtherWayRound) {
  EXPECT_TRUE(rc::check([] {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 9);
    const auto cols = *rc::gen::inRange<std::int64_t>(1, 9);
    ::onnx::TensorProto matrix = constant(kFloat32, {rows, cols});
    for (std::int64_t i = 0; i < rows * cols; ++i) matrix.add_float_data(static_cast<float>(i));
    const Values turned = valuesOf(readWeight({"weight", &matrix, true}, {DType::F32, {cols, rows}}, {}));
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t col = 0; col < cols; ++col)
        RC_ASSERT(turned[static_cast<std::size_t>(col * rows + row)] == static_cast<double>(row * cols + col));
  }));
}

::onnx::TensorProto externalConstant(const std::string& location, const std::string& offset = {}) {
  ::onnx::TensorProto tensor = constant(kFloat32, {2});
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  if (!offset.empty()) add("offset", offset);
  return tensor;
}

TEST(OnnxWeight, IsReadFromAFileBesideTheModel) {
  const TemporaryFolder folder;
  std::ofstream(folder / "model.onnx.data", std::ios::binary) << rawOf({9, 4, 5});
  const ::onnx::TensorProto second = externalConstant("model.onnx.data", "4");
  EXPECT_EQ(valuesOf(readWeight({"bias", &second}, {DType::F32, {2}}, folder.path())), (Values{4, 5}));
  const ::onnx::TensorProto first = externalConstant("model.onnx.data");
  EXPECT_EQ(valuesOf(readWeight({"bias", &first}, {DType::F32, {2}}, folder.path())), (Values{9, 4}));
}

TEST(OnnxWeight, SaysWhatIsWrongWithIt) {
  const TemporaryFolder folder;
  std::ofstream(folder / "short.data", std::ios::binary) << rawOf({9});
  const auto problem = [&](const ::onnx::TensorProto& tensor, const Shape& shape = {2}) {
    const Result<Tensor> read = readWeight({"bias", &tensor}, {DType::F32, shape}, folder.path());
    return read ? std::string("none") : read.error().message;
  };
  EXPECT_TRUE(has(problem(externalConstant("short.data")), "expected 8 bytes from byte 0")) << "too short";
  EXPECT_TRUE(has(problem(externalConstant("short.data", "18446744073709551615")), "from byte 18446744073709551615"));
  EXPECT_TRUE(has(problem(externalConstant("gone.data")), "Put that file next to the model."));
  for (const char* elsewhere : {"../short.data", "/etc/hostname", "a/../../b"})
    EXPECT_TRUE(has(problem(externalConstant(elsewhere)), "not next to the model")) << elsewhere;
  EXPECT_TRUE(has(problem(externalConstant("")), "the model does not name it"));
  EXPECT_TRUE(has(problem(externalConstant("short.data", "4x")), "their offset in it is no number"));
  ::onnx::TensorProto few = constant(kFloat32, {2});
  few.add_float_data(1);
  EXPECT_TRUE(has(problem(few), "expected 8 bytes for [2] f32, found 4")) << problem(few);
  EXPECT_TRUE(has(problem(few, {3}), "it is [2] f32, but the op has [3] f32")) << problem(few, {3});
  EXPECT_TRUE(has(problem(constant(kInt64, {2})), "expected f32, f16 or bf16"));
}

}  // namespace
}  // namespace fuseline::testing
