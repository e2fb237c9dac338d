// Models for ONNX: every op, computed, and the names, shapes, weights and recipes in a file.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/document/pipeline_hash.h"
#include "core/export/onnx/onnx_listing.h"
#include "core/export/onnx/onnx_operation.h"
#include "core/export/pipeline_exporter.h"
#include "core/runtime/bindings.h"
#include "tests/core/export/onnx_evaluator.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"
#include "tests/support/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

// Constants of the graph, such as 1.702, are float32.
constexpr Tolerance kSameFormula = {.relative = 1e-6, .absolute = 1e-6};

// ---- ops

/// A graph of the sample's op alone, from inputs in0, in1 ... to outputs out0, out1 ...
Graph graphOf(const OpSample& sample) {
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (const TensorSpec& input : sample.inputs)
    inputs.push_back(builder.addInput(fmt::format("in{}", inputs.size()), input));
  const Result<NodeId> node = builder.addNode("op", "op", sample.operation, sample.attributes, inputs);
  if (!node) throw std::invalid_argument(node.error().message);
  const std::vector<ValueId> outputs = builder.partial().node(*node).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) builder.addOutput(fmt::format("out{}", i), outputs[i]);
  return std::move(builder).finish(ExecutionMode::Inference);
}

OnnxTensors givenTo(const Graph& graph, const OpData& data) {
  OnnxTensors given;
  for (std::size_t i = 0; i < data.inputs.size(); ++i) given[fmt::format("in{}", i)] = data.inputs[i];
  for (std::size_t i = 0; i < data.parameters.size(); ++i)
    given[graph.node(0).parameterName(static_cast<int>(i))] = data.parameters[i];
  return given;
}

/// With the attributes that the op has in inference.
ReferenceForward forwardOf(const Node& node, const OpData& data) {
  return node.operation->forwardCompute(node.attributes, data.inputs, data.parameters);
}

class OnnxOperations : public ::testing::TestWithParam<const FusibleOperation*> {};

TEST_P(OnnxOperations, ComputeWhatTheOpsDo) {
  const bool isCommunication = GetParam()->category == "Communication";
  for (const OpSample& sample : samplesOf(*GetParam())) {
    SCOPED_TRACE(sample.label);
    const Graph graph = graphOf(sample);
    OnnxGraph onnx(graph);
    OnnxQuantization quantization(graph, {});
    onnx.beginOperation(0);
    const Result<void> added = addOnnxOperation(onnx, quantization);
    ASSERT_EQ(added.hasValue(), !isCommunication);
    if (isCommunication) {
      EXPECT_NE(added.error().message.find("op: " + sample.operation->name), std::string::npos);
      continue;
    }
    const OpData data = dataOf(sample);
    const OnnxTensors made = evaluate(onnx.finish(), givenTo(graph, data));
    const ReferenceForward expected = forwardOf(graph.node(0), data);
    for (std::size_t i = 0; i < expected.outputs.size(); ++i) {
      const ReferenceTensor& actual = made.at(fmt::format("out{}", i));
      EXPECT_EQ(actual.shape, expected.outputs[i].shape);
      EXPECT_TRUE(allClose(actual.values, expected.outputs[i].values, kSameFormula));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OnnxOperations, ::testing::ValuesIn(basicOperations()),
                         [](const auto& instance) { return instance.param->name; });

// ---- files

struct Exported {
  PipelineText file;
  ::onnx::ModelProto model;
  const ::onnx::GraphProto& graph() const { return model.graph(); }

  const ::onnx::TensorProto& weight(std::string_view name) const {
    for (const auto& initializer : graph().initializer())
      if (initializer.name() == name) return initializer;
    throw std::out_of_range(std::string(name));
  }

  int numOf(std::string_view type) const {
    return static_cast<int>(
        std::ranges::count_if(graph().node(), [&](const auto& node) { return node.op_type() == type; }));
  }
};

struct Given {
  std::string recipe = {};
  NamedTensors tensors = {};
  ExecutionMode pass = ExecutionMode::Training;
};

AnalysisOptions optionsOf(const Given& given) {
  AnalysisOptions options{.lowering = {.pass = given.pass}};
  if (!given.recipe.empty()) options.recipe = *Recipe::create(*findRecipe(given.recipe));
  return options;
}

Result<PipelineText> fileOf(const std::string& text, const Given& given = {}) {
  const LoadedDocument loaded = parseDocument(text);
  const AnalysisOptions options = optionsOf(given);
  const Analysis analysis = analyze(loaded.document, options);
  if (!analysis.isRunnable()) throw std::invalid_argument(text);
  const auto tensors = given.tensors.empty() ? nullptr : std::make_shared<const NamedTensors>(given.tensors);
  return findPipelineExporter("onnx")->write({.name = "sample",
                                              .document = loaded.document,
                                              .options = options,
                                              .analysis = analysis,
                                              .seed = 5,
                                              .tensors = tensors});
}

Exported exported(const std::string& text, const Given& given = {}) {
  Result<PipelineText> file = fileOf(text, given);
  if (!file) throw std::invalid_argument(file.error().message);
  Exported result{.file = std::move(*file)};
  const Result<std::string> bytes = contentOf(result.file);
  if (!bytes) throw std::invalid_argument(bytes.error().message);
  if (!result.model.ParseFromString(*bytes)) throw std::invalid_argument("no model");
  return result;
}

std::string errorOf(const std::string& text, const Given& given = {}) {
  const Result<PipelineText> file = fileOf(text, given);
  if (!file) return file.error().message;
  const Result<std::string> bytes = contentOf(*file);
  return bytes ? std::string() : bytes.error().message;
}

std::string document(const std::string& input, const std::string& ops, const std::string& wires,
                     const std::string& last, const std::string& symbols = "") {
  return fmt::format(R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}},
    "symbols": {{{}}}, "pipeline": {{"inputs": [{}], "ops": [{}], "wires": [{}],
    "outputs": [{{"id": "y", "from": "{}.y"}}]}}}})",
                     symbols, input, ops, wires, last);
}

/// y = x W^T, [rows, in] to [rows, out].
std::string oneLinear(std::int64_t rows, std::int64_t in, std::int64_t out, const std::string& dtype = "f32") {
  return document(
      fmt::format(R"({{"id": "x", "dtype": "{}", "shape": [{}, {}]}})", dtype, rows, in),
      fmt::format(R"({{"id": "fc", "op": "BasicLinear", "attributes": {{"in_features": {}, "out_features": {}}}}})", in,
                  out),
      R"(["x", "fc.x"])", "fc");
}

/// x -> act -> attention, which is an External -> after -> y.
std::string withExternal(const std::string& module) {
  const std::string external =
      fmt::format(R"({{"id": "attention", "op": "External", "attributes": {{"module": "{}"}}}})", module);
  return document(R"({"id": "x", "dtype": "f32", "shape": [4, 8]})",
                  R"({"id": "act", "op": "GELU"}, )" + external + R"(, {"id": "after", "op": "GELU"})",
                  R"(["x", "act.x"], ["act.y", "attention.x"], ["attention.y", "after.x"])", "after");
}

std::string templateText(const char* name) { return findTemplate(name)->text; }

std::string metadata(const ::onnx::ModelProto& model, std::string_view key) {
  for (const auto& entry : model.metadata_props())
    if (entry.key() == key) return entry.value();
  return {};
}

/// Every template except those with collectives and those with ops that cannot be exported to ONNX.
std::vector<std::string> templates() {
  std::vector<std::string> texts;
  for (const DocumentTemplate& each : documentTemplates())
    if (!has(each.text, "tensor_parallel") && !has(each.text, "\"DotProductAttention\"")) texts.push_back(each.text);
  return texts;
}

// The specification's requirement on a graph: names are produced once, and before they are read.
TEST(OnnxFile, MakesEveryTensorOnceAndBeforeItIsRead) {
  ASSERT_GT(templates().size(), 5U);
  for (const std::string& text : templates()) {
    const Exported file = exported(text);
    std::set<std::string> made, nodes;
    for (const auto& input : file.graph().input()) EXPECT_TRUE(made.insert(input.name()).second);
    for (const auto& initializer : file.graph().initializer()) EXPECT_TRUE(made.insert(initializer.name()).second);
    for (const auto& node : file.graph().node()) {
      EXPECT_TRUE(nodes.insert(node.name()).second) << node.name();
      for (const std::string& input : node.input()) EXPECT_TRUE(made.contains(input)) << input;
      for (const std::string& output : node.output()) EXPECT_TRUE(made.insert(output).second) << output;
    }
    for (const auto& output : file.graph().output()) EXPECT_TRUE(made.contains(output.name())) << output.name();
  }
}

TEST(OnnxFile, NamesNodesAfterOpsAndSaysWhereItIsFrom) {
  const std::string text = templateText("llama-mlp");
  const Exported file = exported(text);
  std::set<std::string> names;
  for (const auto& node : file.graph().node()) names.insert(node.name());
  const PipelineDocument written = parseDocument(text).document;
  for (const DocumentOp& op : written.ops()) EXPECT_TRUE(names.contains(op.id)) << op.id;
  EXPECT_EQ(file.model.producer_name(), "fuseline");
  EXPECT_EQ(file.model.opset_import(0).version(), 20);
  EXPECT_EQ(file.model.ir_version(), 9);
  const std::string pipeline = metadata(file.model, "fuseline.pipeline");
  EXPECT_EQ(parseDocument(pipeline).document, written);
  EXPECT_EQ(metadata(file.model, "fuseline.pipeline_hash"), hashWithoutView(Json::parse(pipeline)));
  EXPECT_EQ(metadata(file.model, "fuseline.graph_hash"), onnxGraphHash(file.graph()));
}

TEST(OnnxFile, ListsTheGraphWithoutDataForPeople) {
  const Exported file = exported(oneLinear(2, 3, 4));
  EXPECT_TRUE(has(file.file.text, "  x: float32[2, 3]\n")) << file.file.text;
  EXPECT_TRUE(has(file.file.text, "  y = MatMul(x, fc/weight_transposed)\n")) << file.file.text;
  EXPECT_TRUE(has(file.file.text, "  fc.weight: float32[4, 3]\n")) << file.file.text;
  EXPECT_TRUE(has(file.file.text, "weights of 48 B")) << file.file.text;
}

TEST(OnnxFile, HasTheWeightsThatARunStartsWith) {
  for (const std::string& text : templates()) {
    const Exported file = exported(text);
    const Graph graph = lower(parseDocument(text).document).graph;
    const NamedTensors parameters = parametersOf(graph, *makeBindings(graph, 5));
    for (const auto& [name, tensor] : parameters) {
      const ::onnx::TensorProto& weight = file.weight(name);
      EXPECT_EQ(Shape(weight.dims().begin(), weight.dims().end()), tensor.spec.shape);
      ASSERT_EQ(weight.raw_data().size(), tensor.data.size());
      EXPECT_EQ(std::memcmp(weight.raw_data().data(), tensor.data.data(), tensor.data.size()), 0) << name;
    }
  }
}

TEST(OnnxFile, KeepsTheDtypesOfThePipeline) {
  for (const auto& [dtype, type] : {std::pair("f32", 1), std::pair("f16", 10), std::pair("bf16", 16)}) {
    const Exported file = exported(oneLinear(2, 3, 4, dtype));
    EXPECT_EQ(file.graph().input(0).type().tensor_type().elem_type(), type);
    EXPECT_EQ(file.graph().output(0).type().tensor_type().elem_type(), type);
    EXPECT_EQ(file.weight("fc.weight").data_type(), type);
    EXPECT_EQ(file.numOf("Cast"), 0);
    const bool isBf16 = type == 16;
    EXPECT_EQ(std::ranges::any_of(file.file.notes, [](const auto& note) { return has(note, "fc: a GEMM in bf16"); }),
              isBf16);
  }
}

NamedTensors weightOf(const Shape& shape, const std::vector<double>& values) {
  return {{"fc.weight", Tensor::fromDoubles({DType::F32, shape}, values)}};
}

// [1, 2] times rows [3, 4], [5, 6] and [-1, 0.5], computed by hand.
TEST(OnnxFile, TakesTheWeightsThatAreGiven) {
  const Exported file = exported(oneLinear(1, 2, 3), {.tensors = weightOf({3, 2}, {3, 4, 5, 6, -1, 0.5})});
  const OnnxTensors made = evaluate(file.graph(), {{"x", {.shape = {1, 2}, .values = {1, 2}}}});
  EXPECT_EQ(made.at("y").values, (std::vector<double>{11, 17, 0}));
}

TEST(OnnxFile, LeavesAScalarAScalarBesideAVectorOfOne) {
  const Exported file = exported(
      document(R"({"id": "x", "dtype": "f32", "shape": []})",
               R"({"id": "f", "op": "Formula", "attributes": {"y": "x * a + b", "parameters": "a[1] = 2, b = 1"}})",
               R"(["x", "f.x"])", "f"));
  const ReferenceTensor y = evaluate(file.graph(), {{"x", {.shape = {}, .values = {5}}}}).at("y");
  EXPECT_EQ(y.shape, Shape());
  EXPECT_EQ(y.values, std::vector<double>{11});
}

TEST(OnnxFile, RefusesTensorsThatDoNotFit) {
  EXPECT_EQ(errorOf(oneLinear(1, 2, 3), {.tensors = weightOf({2, 2}, {1, 2, 3, 4})}),
            "fc.weight: the given tensor is [2, 2] f32, but the pipeline needs [3, 2] f32.");
}

TEST(OnnxFile, RefusesWhatProtobufCannotHold) {
  const std::string error = errorOf(oneLinear(1, 32768, 32768, "bf16"));
  EXPECT_TRUE(has(error, "sample: the model has 2 GiB")) << error;
}

TEST(OnnxFile, RefusesCollectivesByName) {
  EXPECT_EQ(
      errorOf(withExternal("te.DotProductAttention(16, 64)")),
      "attention (External) cannot be expressed in ONNX: its attribute nodes is empty; only importing an ONNX model "
      "fills it. Remove it, or export each part separately.");
  const std::string error = errorOf(templateText("tensor-parallel-mlp"));
  EXPECT_TRUE(has(error, "fc2.sum: ReduceScatter communicates between ranks")) << error;
}

// ---- extents

std::vector<std::string> extentsOf(const ::onnx::ValueInfoProto& info) {
  std::vector<std::string> extents;
  for (const auto& extent : info.type().tensor_type().shape().dim())
    extents.push_back(extent.has_dim_param() ? extent.dim_param() : std::to_string(extent.dim_value()));
  return extents;
}

using Texts = std::vector<std::string>;

TEST(OnnxExtents, NameWhatMayBeAny) {
  const Exported file = exported(document(
      R"({"id": "x", "dtype": "f32", "shape": ["B", "M", "H"]})",
      R"({"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": ["H"]}}, {"id": "act", "op": "SwiGLU"})",
      R"(["x", "norm.x"], ["norm.y", "act.x"])", "act", R"("B": 3, "M": 5, "H": 8)"));
  EXPECT_EQ(extentsOf(file.graph().input(0)), (Texts{"B", "M", "8"}));
  EXPECT_EQ(extentsOf(file.graph().output(0)), (Texts{"B", "M", "4"}));
}

TEST(OnnxExtents, StayFixedWhereAnExpressionReadsThem) {
  const auto reshaped = [](const char* shape) {
    return exported(document(R"({"id": "x", "dtype": "f32", "shape": ["M", 6]})",
                             fmt::format(R"({{"id": "view", "op": "Reshape", "attributes": {{"shape": {}}}}})", shape),
                             R"(["x", "view.x"])", "view", R"("M": 4)"));
  };
  EXPECT_EQ(extentsOf(reshaped(R"(["M", 2, 3])").graph().output(0)), (Texts{"M", "2", "3"})) << "copied";
  const Exported several = reshaped("[-1, 3]");
  EXPECT_EQ(extentsOf(several.graph().input(0)), (Texts{"M", "6"}));
  EXPECT_EQ(several.graph().output(0).type().tensor_type().shape().dim(0).value_case(), 0) << "2 M rows";
  EXPECT_EQ(extentsOf(reshaped("[-1, 2, 3]").graph().output(0)), (Texts{"M", "2", "3"}));
  const Exported fixed = reshaped(R"([2, "3*M"])");
  EXPECT_EQ(extentsOf(fixed.graph().output(0)), (Texts{"2", "12"}));
  EXPECT_TRUE(std::ranges::any_of(fixed.file.notes,
                                  [](const std::string& note) { return has(note, "The model works at M=4 only"); }));
}

// Positions, the mask and the heads that share keys follow the input of a run.
TEST(OnnxExtents, FollowTokensThroughRotationsAndMasks) {
  const Exported file = exported(document(
      R"({"id": "x", "dtype": "f32", "shape": ["B", "S", 8]}, {"id": "k", "dtype": "f32", "shape": ["B", "S", 4]},
         {"id": "v", "dtype": "f32", "shape": ["B", "S", 4]})",
      R"({"id": "rope", "op": "RotaryPositionEmbedding", "attributes": {"dim": 4, "tensor_format": "bshd"}},
         {"id": "attention", "op": "DotProductAttention", "attributes": {"num_attention_heads": 2, "kv_channels": 4,
          "num_gqa_groups": 1, "qkv_format": "bshd", "attn_mask_type": "causal"}})",
      R"(["x", "rope.x"], ["rope.y", "attention.x"], ["k", "attention.k"], ["v", "attention.v"])", "attention",
      R"("B": 2, "S": 5)"));
  EXPECT_EQ(extentsOf(file.graph().output(0)), (Texts{"B", "S", "8"}));
}

// Heads of attention: none of the nodes names the batch or the number of tokens.
TEST(OnnxExtents, FollowBatchAndTokensThroughReshapes) {
  const Exported file =
      exported(document(R"({"id": "x", "dtype": "f32", "shape": ["B", "S", 6]})",
                        R"({"id": "apart", "op": "Reshape", "attributes": {"shape": ["B", "S", 2, 3]}},
         {"id": "merged", "op": "Reshape", "attributes": {"shape": ["B", "S", 6]}})",
                        R"(["x", "apart.x"], ["apart.y", "merged.x"])", "merged", R"("B": 2, "S": 5)"));
  EXPECT_EQ(extentsOf(file.graph().input(0)), (Texts{"B", "S", "6"}));
  EXPECT_EQ(extentsOf(file.graph().output(0)), (Texts{"B", "S", "6"}));
}

// ---- recipes

TEST(OnnxRecipes, QuantizeInputsAndHoldCodesOfWeights) {
  // The largest magnitude is 448: the encoded values are the weights themselves; E4M3 has 1 at 0x38, 2 at 0x40, 448 at
  // 0x7e.
  const Exported file =
      exported(oneLinear(16, 16, 16), {.recipe = "Float8CurrentScaling", .tensors = weightOf({16, 16}, [] {
                                                                           std::vector<double> values(256, 1.0);
                                                                           values[1] = -2.0;
                                                                           values[2] = 448.0;
                                                                           return values;
                                                                         }())});
  EXPECT_EQ(file.numOf("QuantizeLinear"), 1);
  EXPECT_EQ(file.numOf("DequantizeLinear"), 2);
  const ::onnx::TensorProto& codes = file.weight("fc.weight");
  EXPECT_EQ(codes.data_type(), 17);
  EXPECT_EQ(codes.raw_data().substr(0, 4), "\x38\xC0\x7E\x38");
  float inverse = 0.0F;
  std::memcpy(&inverse, file.weight("fc.weight.scale_inv").raw_data().data(), sizeof(inverse));
  EXPECT_EQ(inverse, 1.0F);
}

TEST(OnnxRecipes, TakeTheScalesOfARun) {
  const LoadedDocument loaded = parseDocument(oneLinear(16, 16, 16));
  const Analysis analysis = analyze(loaded.document, optionsOf({.recipe = "DelayedScaling"}));
  NamedTensors state;
  for (const QuantizerState& each : quantizerStates(analysis.graph()))
    state.emplace_back(each.scaleName,
                       Tensor::fromDoubles(scaleSpec(), std::array{each.type == TensorType::Input ? 8.0 : 4.0}));
  const Exported file = exported(oneLinear(16, 16, 16), {.recipe = "DelayedScaling", .tensors = state});
  EXPECT_EQ(file.numOf("ReduceMax"), 0);
  float inverse = 0.0F;
  std::memcpy(&inverse, file.weight("0.125").raw_data().data(), sizeof(inverse));
  EXPECT_EQ(inverse, 0.125F);
  std::memcpy(&inverse, file.weight("fc.weight.scale_inv").raw_data().data(), sizeof(inverse));
  EXPECT_EQ(inverse, 0.25F);
}

TEST(OnnxRecipes, FollowInputsWhereNoScaleIsKnownAndSaySo) {
  const Exported file = exported(oneLinear(16, 16, 16), {.recipe = "DelayedScaling"});
  EXPECT_EQ(file.numOf("ReduceMax"), 1);
  EXPECT_TRUE(
      std::ranges::any_of(file.file.notes, [](const auto& note) { return has(note, "fc: no amax history is known"); }));
}

TEST(OnnxRecipes, LeaveBlocksInHighPrecisionAndSaySo) {
  for (const char* recipe : {"Float8BlockScaling", "MXFP8BlockScaling", "NVFP4BlockScaling"}) {
    const Exported file = exported(oneLinear(128, 128, 128), {.recipe = recipe});
    EXPECT_EQ(file.numOf("QuantizeLinear") + file.numOf("DequantizeLinear"), 0) << recipe;
    EXPECT_TRUE(std::ranges::any_of(file.file.notes, [](const auto& note) {
      return has(note, "fc: in high precision");
    })) << recipe;
  }
}

TEST(OnnxFile, PassesOverDropoutAndSaysSo) {
  const Exported file =
      exported(document(R"({"id": "x", "dtype": "f32", "shape": [4]})",
                        R"({"id": "drop", "op": "Dropout", "attributes": {"p": 0.5}})", R"(["x", "drop.x"])", "drop"));
  EXPECT_EQ(file.graph().node_size(), 1);
  EXPECT_EQ(file.graph().node(0).op_type(), "Identity");
  EXPECT_TRUE(has(file.file.notes.front(), "drop: passes its input on"));
}

}  // namespace
}  // namespace fuseline::testing
