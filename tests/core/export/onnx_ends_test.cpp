// Nodes of a model before and after the ops: a pipeline keeps them, and an export writes the whole model again.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/folded_codes.h"
#include "core/export/onnx/import/fused_attention.h"
#include "core/export/onnx/import/quantized_relu.h"
#include "core/export/onnx/kept/kept_nodes.h"
#include "core/export/onnx/kept/model_ends.h"
#include "core/export/onnx/onnx_import.h"
#include "core/export/pipeline_exporter.h"
#include "core/runtime/pipeline_run.h"
#include "tests/support/text.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

using Texts = std::vector<std::string>;

void declareAs(::onnx::ValueInfoProto& info, const std::string& name, std::int32_t type, const Shape& shape) {
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  for (const std::int64_t extent : shape)
    info.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(extent);
}

::onnx::NodeProto& addNamedNode(::onnx::GraphProto& graph, const std::string& type, const Texts& inputs,
                                const Texts& outputs) {
  ::onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(type);
  node.set_name("/" + outputs.front() + "/" + type);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  return node;
}

void addTable(::onnx::GraphProto& graph, const std::string& name, const Shape& shape) {
  ::onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : shape) tensor.add_dims(extent);
  for (std::int64_t i = 0; i < numElements(shape); ++i) tensor.add_float_data(static_cast<float>(i));
}

/// ids [2, 3] -> rows of a table -> ReLU -> the largest, and the sum of all.
::onnx::ModelProto pooled(std::int64_t rows) {
  ::onnx::ModelProto model;
  model.add_opset_import()->set_version(17);
  ::onnx::GraphProto& graph = *model.mutable_graph();
  declareAs(*graph.add_input(), "ids", ::onnx::TensorProto::INT64, {2, 3});
  addTable(graph, "table", {rows, 4});
  addNamedNode(graph, "Gather", {"table", "ids"}, {"embedded"});
  addNamedNode(graph, "Relu", {"embedded"}, {"hidden"});
  addNamedNode(graph, "ReduceMax", {"hidden"}, {"largest"});
  for (const char* const output : {"largest", "hidden"})
    declareAs(*graph.add_output(), output, ::onnx::TensorProto::FLOAT, {});
  graph.mutable_output(1)->mutable_type()->mutable_tensor_type()->clear_shape();
  return model;
}

ImportedPipeline importedModel(const ::onnx::ModelProto& model) {
  Result<ImportedPipeline> pipeline =
      importOnnxModel(model.SerializeAsString(), "other.onnx", {.keepsFlat = true, .takesWeights = true});
  if (!pipeline) throw std::invalid_argument(pipeline.error().message);
  return std::move(*pipeline);
}

struct Written {
  ::onnx::ModelProto model;
  std::string notes;
};

Written writtenAgain(const PipelineDocument& document, const NamedTensors* tensors) {
  const AnalysisOptions options;
  const Analysis analysis = analyze(document, options);
  const Result<PipelineText> text =
      findPipelineExporter("onnx")->write({.name = "sample",
                                           .document = document,
                                           .options = options,
                                           .analysis = analysis,
                                           .tensors = tensors ? std::make_shared<NamedTensors>(*tensors) : nullptr});
  if (!text) throw std::invalid_argument(text.error().message);
  const Result<std::string> bytes = contentOf(*text);
  Written written;
  if (!bytes || !written.model.ParseFromString(*bytes)) throw std::invalid_argument("no model");
  for (const std::string& note : text->notes) written.notes += note + "\n";
  return written;
}

template <class Infos>
Texts infoNames(const Infos& infos) {
  Texts names;
  for (const auto& info : infos) names.push_back(info.name());
  return names;
}

Texts typesOf(const ::onnx::GraphProto& graph) {
  Texts types;
  for (const auto& node : graph.node()) types.push_back(node.op_type());
  return types;
}

TEST(OnnxModelEnds, AreWrittenAgainWithTheModelsInputsAndOutputs) {
  const ImportedPipeline pipeline = importedModel(pooled(5));
  ASSERT_EQ(pipeline.document.ops().size(), 1U);
  EXPECT_EQ(pipeline.document.inputs()[0].id, "embedded");
  const ::onnx::GraphProto written = writtenAgain(pipeline.document, &pipeline.weights).model.graph();
  EXPECT_EQ(infoNames(written.input()), Texts{"ids"});
  EXPECT_EQ(infoNames(written.output()), (Texts{"largest", "hidden"}));
  EXPECT_EQ(typesOf(written), (Texts{"Gather", "Max", "ReduceMax"}));
}

// Names that no id of a pipeline has, and a conversion before the output.
TEST(OnnxModelEnds, KeepNamesAndTypesOfTheModel) {
  ::onnx::ModelProto model;
  model.add_opset_import()->set_version(17);
  ::onnx::GraphProto& graph = *model.mutable_graph();
  declareAs(*graph.add_input(), "in put.1", ::onnx::TensorProto::FLOAT, {2, 3});
  addNamedNode(graph, "Relu", {"in put.1"}, {"hidden"});
  for (const bool isConverted : {false, true}) {
    if (isConverted) {
      ::onnx::AttributeProto& to = *addNamedNode(graph, "Cast", {"hidden"}, {"half:1"}).add_attribute();
      to.set_name("to");
      to.set_type(::onnx::AttributeProto::INT);
      to.set_i(::onnx::TensorProto::FLOAT16);
    }
    graph.clear_output();
    declareAs(*graph.add_output(), isConverted ? "half:1" : "hidden",
              isConverted ? ::onnx::TensorProto::FLOAT16 : ::onnx::TensorProto::FLOAT, {2, 3});
    const ImportedPipeline pipeline = importedModel(model);
    const ::onnx::GraphProto written = writtenAgain(pipeline.document, &pipeline.weights).model.graph();
    EXPECT_EQ(infoNames(written.input()), Texts{"in put.1"});
    EXPECT_EQ(infoNames(written.output()), infoNames(graph.output()));
    EXPECT_EQ(written.output(0).type().tensor_type().elem_type(), graph.output(0).type().tensor_type().elem_type());
  }
}

TEST(OnnxModelEnds, OfAFileAreReadAgain) {
  const ImportedPipeline pipeline = importedModel(pooled(5));
  const std::string text = serialize(pipeline.document);
  EXPECT_TRUE(has(text, "\"minor\": 5")) << text;
  const LoadedDocument loaded = parseDocument(text);
  EXPECT_TRUE(loaded.diagnostics.empty());
  ASSERT_TRUE(modelEnds(loaded.document));
  EXPECT_EQ(modelEnds(loaded.document)->outputs, Texts{"embedded"});
  EXPECT_EQ(modelEnds(loaded.document)->inputs, Texts{loaded.document.outputs()[0].id});
}

TEST(OnnxModelEnds, NeedTheConstantsThatTheModelHad) {
  const ImportedPipeline pipeline = importedModel(pooled(20));
  const Written without = writtenAgain(pipeline.document, nullptr);
  EXPECT_EQ(infoNames(without.model.graph().input()), Texts{"embedded"});
  EXPECT_TRUE(has(without.notes, "their constants onnx:model.constant1 are not given. Export with --tensors"))
      << without.notes;
  const Written with = writtenAgain(pipeline.document, &pipeline.weights);
  EXPECT_EQ(infoNames(with.model.graph().input()), Texts{"ids"});
  std::size_t largest = 0;
  for (const auto& tensor : with.model.graph().initializer()) largest = std::max(largest, tensor.raw_data().size());
  EXPECT_EQ(largest, 80 * sizeof(float));
  // A model that was written gives the same pipeline and constants.
  const ImportedPipeline again = importedModel(with.model);
  EXPECT_EQ(serialize(again.document), serialize(pipeline.document));
  ASSERT_EQ(again.weights.size(), 1U);
  EXPECT_EQ(again.weights[0].first, "onnx:model.constant1");
}

TEST(OnnxModelEnds, AreLeftOutWhereThePipelineHasNoSuchOutput) {
  const ImportedPipeline pipeline = importedModel(pooled(5));
  Json file = toJson(pipeline.document);
  file["pipeline"]["outputs"][0]["id"] = "other";
  const Written written = writtenAgain(parseDocument(file.dump()).document, nullptr);
  EXPECT_EQ(infoNames(written.model.graph().output()), Texts{"other"});
  EXPECT_TRUE(has(written.notes, ", which the pipeline no longer has")) << written.notes;
}

TEST(OnnxModelEnds, ThatAnotherProgramWroteAreLeftOut) {
  const ImportedPipeline pipeline = importedModel(pooled(5));
  for (const Json& nodes : {Json("AAAA"), Json("no base64"), Json(3)}) {
    Json file = toJson(pipeline.document);
    file[kModelEndsSection]["nodes"] = nodes;
    const Written written = writtenAgain(parseDocument(file.dump()).document, nullptr);
    EXPECT_EQ(infoNames(written.model.graph().input()), Texts{"embedded"});
  }
}

/// y = x, three times plus `more`, which the body reads of the graph around it.
::onnx::GraphProto withLoop() {
  ::onnx::GraphProto graph;
  for (const char* const input : {"x", "more", "count", "always"}) graph.add_input()->set_name(input);
  ::onnx::NodeProto& loop = addNamedNode(graph, "Loop", {"count", "always", "x"}, {"y"});
  ::onnx::AttributeProto& attribute = *loop.add_attribute();
  attribute.set_name("body");
  attribute.set_type(::onnx::AttributeProto::GRAPH);
  ::onnx::GraphProto& body = *attribute.mutable_g();
  for (const char* const input : {"i", "go", "y"}) body.add_input()->set_name(input);
  addNamedNode(body, "Identity", {"go"}, {"going"});
  addNamedNode(body, "Add", {"y", "more"}, {"sum"});
  for (const char* const output : {"going", "sum"}) body.add_output()->set_name(output);
  return graph;
}

TEST(OnnxKeptNodes, KeepTheBodyOfALoop) {
  const ::onnx::GraphProto graph = withLoop();
  const auto kept = keepNodes(OnnxReading(graph), {}, {.inputs = {"x", "more"}, .outputs = {"y"}}, {}, {});
  ASSERT_TRUE(kept);
  ::onnx::GraphProto written;
  OnnxOpsets opsets;
  ASSERT_TRUE(writeKeptNodes(kept->text, {.id = "l", .inputs = {"a", "b"}, .outputs = {"c"}}, written, opsets));
  EXPECT_EQ(infoNames(written.input()), (Texts{"count", "always"}));
  ASSERT_EQ(written.node_size(), 1);
  EXPECT_EQ(written.node(0).input(2), "a");
  EXPECT_EQ(written.node(0).output(0), "c");
  const ::onnx::GraphProto& body = written.node(0).attribute(0).g();
  ASSERT_EQ(body.node_size(), 2);
  EXPECT_EQ(body.node(1).input(0), body.input(2).name());
  EXPECT_NE(body.input(2).name(), "c");
  EXPECT_EQ(body.node(1).input(1), "b");
  EXPECT_EQ(body.node(1).output(0), body.output(1).name());
}

TEST(OnnxKeptNodes, JoinTheAxesOfAnOldSoftmax) {
  ::onnx::GraphProto graph;
  graph.add_input()->set_name("x");
  ::onnx::AttributeProto& axis = *addNamedNode(graph, "Softmax", {"x"}, {"y"}).add_attribute();
  axis.set_name("axis");
  axis.set_type(::onnx::AttributeProto::INT);
  axis.set_i(1);
  OnnxOpsets opsets;
  opsets.Add()->set_version(11);
  const auto kept = keepNodes(OnnxReading(graph), opsets, {.inputs = {"x"}, .outputs = {"y"}}, {}, {});
  ASSERT_TRUE(kept);
  ::onnx::GraphProto written;
  ASSERT_TRUE(writeKeptNodes(kept->text, {.id = "s", .inputs = {"a"}, .outputs = {"b"}}, written, opsets));
  EXPECT_EQ(typesOf(written), (Texts{"Shape", "Flatten", "Softmax", "Reshape"}));
  EXPECT_EQ(written.node(3).output(0), "b");
}

TEST(OnnxCodes, OfSmallConstantsBecomeNumbers) {
  ::onnx::GraphProto graph;
  ::onnx::TensorProto& codes = *graph.add_initializer();
  codes.set_name("codes");
  codes.set_data_type(::onnx::TensorProto::INT8);
  codes.add_dims(2);
  codes.set_raw_data(std::string("\x02\xFE", 2));
  ::onnx::TensorProto& scale = *graph.add_initializer();
  scale.set_name("scale");
  scale.set_data_type(::onnx::TensorProto::FLOAT);
  scale.add_float_data(0.5F);
  addNamedNode(graph, "DequantizeLinear", {"codes", "scale"}, {"gamma"});
  addNamedNode(graph, "DequantizeLinear", {"codes", "scale"}, {"weight"});
  addNamedNode(graph, "Mul", {"x", "gamma"}, {"scaled"});
  addNamedNode(graph, "MatMul", {"scaled", "weight"}, {"y"});
  foldSmallCodes(graph, {});
  EXPECT_EQ(typesOf(graph), (Texts{"DequantizeLinear", "Mul", "MatMul"}));
  ASSERT_EQ(graph.initializer_size(), 3);
  EXPECT_EQ(graph.initializer(2).name(), "gamma");
  float values[2];
  ASSERT_EQ(graph.initializer(2).raw_data().size(), sizeof(values));
  graph.initializer(2).raw_data().copy(reinterpret_cast<char*>(values), sizeof(values));
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_EQ(values[1], -1.0F);
}

::onnx::TensorProto& addByte(::onnx::GraphProto& graph, const std::string& name, std::int32_t type, char value) {
  ::onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  tensor.set_raw_data(std::string(1, value));
  return tensor;
}

/// x, or its Softmax, quantized with a zero point.
Texts typesWithZeroPoint(std::int32_t type, char zero, bool isSoftmax) {
  ::onnx::GraphProto graph;
  addTable(graph, "scale", {});
  addByte(graph, "zero", type, zero);
  if (isSoftmax) addNamedNode(graph, "Softmax", {"x"}, {"p"});
  addNamedNode(graph, "QuantizeLinear", {isSoftmax ? "p" : "x", "scale", "zero"}, {"codes"});
  addNamedNode(graph, "DequantizeLinear", {"codes", "scale", "zero"}, {"y"});
  addQuantizedRelus(graph, {});
  return typesOf(graph);
}

TEST(OnnxCodes, WithoutNegativeNumbersAreThoseOfARelu) {
  const Texts with = {"Relu", "QuantizeLinear", "DequantizeLinear"}, without = {"QuantizeLinear", "DequantizeLinear"};
  EXPECT_EQ(typesWithZeroPoint(::onnx::TensorProto::UINT8, 0, false), with);
  EXPECT_EQ(typesWithZeroPoint(::onnx::TensorProto::INT8, -128, false), with);
  EXPECT_EQ(typesWithZeroPoint(::onnx::TensorProto::UINT8, 1, false), without);
  EXPECT_EQ(typesWithZeroPoint(::onnx::TensorProto::INT8, 0, false), without);
  EXPECT_EQ(typesWithZeroPoint(::onnx::TensorProto::UINT8, 0, true),
            (Texts{"Softmax", "QuantizeLinear", "DequantizeLinear"}));
}

TEST(OnnxFusedAttention, GivesItsProjectionAway) {
  ::onnx::ModelProto model;
  model.add_opset_import()->set_version(17);
  ::onnx::GraphProto& graph = *model.mutable_graph();
  addTable(graph, "w", {4, 12});
  addTable(graph, "b", {12});
  addNamedNode(graph, "Attention", {"x", "w", "b"}, {"y"}).set_domain("com.microsoft");
  splitFusedAttention(model, {});
  EXPECT_EQ(typesOf(graph), (Texts{"MatMul", "Add", "Split", "MultiHeadAttention"}));
  ASSERT_EQ(graph.node(3).input_size(), 6);
  EXPECT_EQ(graph.node(3).input(2), graph.node(2).output(2));
  EXPECT_EQ(graph.node(3).output(0), "y");
}

}  // namespace
}  // namespace fuseline::testing
