// Models of other programs through a pipeline and back: nodes in one piece that are several ops, weights that are
// computed, and nodes that an External keeps.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/kept/kept_nodes.h"
#include "core/export/onnx/onnx_fused_nodes.h"
#include "core/export/onnx/onnx_import.h"
#include "core/export/onnx/onnx_node_order.h"
#include "core/export/pipeline_exporter.h"
#include "core/runtime/pipeline_run.h"
#include "tests/support/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

using Texts = std::vector<std::string>;

void declare(::onnx::ValueInfoProto& info, const std::string& name, const Shape& shape) {
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : shape)
    info.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(extent);
}

/// x: [2, 4] is the input, y the output.
::onnx::ModelProto model() {
  ::onnx::ModelProto model;
  model.add_opset_import()->set_version(17);
  declare(*model.mutable_graph()->add_input(), "x", {2, 4});
  model.mutable_graph()->add_output()->set_name("y");
  return model;
}

::onnx::NodeProto& add(::onnx::ModelProto& model, const std::string& type, const Texts& inputs, const Texts& outputs) {
  ::onnx::NodeProto& node = *model.mutable_graph()->add_node();
  node.set_op_type(type);
  node.set_name("/" + outputs.front() + "/" + type);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  return node;
}

void set(::onnx::NodeProto& node, const char* name, float value) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
}

void constant(::onnx::ModelProto& model, const std::string& name, const Shape& shape,
              const std::vector<float>& values) {
  ::onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : shape) tensor.add_dims(extent);
  for (const float value : values) tensor.add_float_data(value);
}

std::vector<float> counted(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

ImportedPipeline imported(const ::onnx::ModelProto& model) {
  Result<ImportedPipeline> pipeline =
      importOnnxModel(model.SerializeAsString(), "other.onnx", {.keepsFlat = true, .takesWeights = true});
  if (!pipeline) throw std::invalid_argument(pipeline.error().message);
  return std::move(*pipeline);
}

Texts operationsOf(const PipelineDocument& document) {
  Texts operations;
  for (const DocumentOp& op : document.ops()) operations.push_back(op.operation);
  return operations;
}

std::vector<double> weightOf(const ImportedPipeline& pipeline, const std::string& name) {
  const auto found = std::ranges::find(pipeline.weights, name, &NamedTensors::value_type::first);
  if (found == pipeline.weights.end()) throw std::invalid_argument(name);
  return found->second.toDoubles();
}

Result<::onnx::ModelProto> exportedWith(const ImportedPipeline& pipeline, bool hasTensors) {
  const AnalysisOptions options;
  const Analysis analysis = analyze(pipeline.document, options);
  const Result<PipelineText> text = findPipelineExporter("onnx")->write(
      {.name = "sample",
       .document = pipeline.document,
       .options = options,
       .analysis = analysis,
       .tensors = hasTensors ? std::make_shared<NamedTensors>(pipeline.weights) : nullptr});
  if (!text) return text.error();
  const Result<std::string> bytes = contentOf(*text);
  ::onnx::ModelProto written;
  if (!bytes || !written.ParseFromString(*bytes)) return Error{"no model"};
  return written;
}

Texts typesIn(const ::onnx::GraphProto& graph) {
  Texts types;
  for (const auto& node : graph.node()) types.push_back(node.op_type());
  return types;
}

// ---- nodes that are several ops

TEST(OnnxFusedNodes, TakesApartASumWithANorm) {
  ::onnx::ModelProto sum = model();
  declare(*sum.mutable_graph()->add_input(), "skip", {2, 4});
  constant(sum, "gamma", {4}, {1, 2, 3, 4});
  ::onnx::NodeProto& node =
      add(sum, "SkipSimplifiedLayerNormalization", {"x", "skip", "gamma"}, {"y", "", "", "residual"});
  node.set_domain("com.microsoft");
  set(node, "epsilon", 0.5F);
  const ImportedPipeline pipeline = imported(sum);
  EXPECT_EQ(operationsOf(pipeline.document), (Texts{"AddExtraInput", "RMSNorm"}));
  EXPECT_EQ(pipeline.document.ops()[1].attributes.at("eps"), 0.5);
  EXPECT_EQ(weightOf(pipeline, pipeline.document.ops()[1].id + ".weight"), (std::vector<double>{1, 2, 3, 4}));
}

TEST(OnnxFusedNodes, LeavesAloneWhatIsNoFusedNode) {
  ::onnx::ModelProto others = model();
  add(others, "Gelu", {"x"}, {"g"});
  add(others, "FusedConv", {"g"}, {"y"}).set_domain("com.microsoft");
  ::onnx::GraphProto graph = others.graph();
  splitFusedNodes(graph);
  EXPECT_EQ(graph.SerializeAsString(), others.graph().SerializeAsString());
}

// ---- weights that are computed

::onnx::ModelProto gemm(const Shape& shapeOfC, const std::vector<float>& c) {
  ::onnx::ModelProto layer = model();
  constant(layer, "w", {4, 3}, counted(12));
  constant(layer, "c", shapeOfC, c);
  ::onnx::NodeProto& node = add(layer, "Gemm", {"x", "w", "c"}, {"y"});
  set(node, "alpha", 2.0F);
  set(node, "beta", 0.5F);
  return layer;
}

TEST(OnnxLayers, HaveTheFactorsOfAGemmInTheirWeights) {
  for (const auto& [shape, values] :
       {std::pair(Shape{3}, std::vector{2.0F, 4.0F, 6.0F}), std::pair(Shape{1, 3}, std::vector{2.0F, 4.0F, 6.0F})}) {
    const ImportedPipeline pipeline = imported(gemm(shape, values));
    ASSERT_EQ(operationsOf(pipeline.document), Texts{"Linear"});
    EXPECT_EQ(weightOf(pipeline, "y.weight"), (std::vector<double>{0, 6, 12, 18, 2, 8, 14, 20, 4, 10, 16, 22}));
    EXPECT_EQ(weightOf(pipeline, "y.bias"), (std::vector<double>{1, 2, 3}));
  }
}

TEST(OnnxLayers, SpreadABiasOfOneElement) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1}}) {
    const ImportedPipeline pipeline = imported(gemm(shape, {3.0F}));
    ASSERT_EQ(operationsOf(pipeline.document), Texts{"Linear"});
    EXPECT_EQ(weightOf(pipeline, "y.bias"), (std::vector<double>{1.5, 1.5, 1.5}));
  }
}

TEST(OnnxLayers, KeepTheirWeightsBesideASumThatIsNone) {
  const ImportedPipeline pipeline = imported(gemm({2, 3}, counted(6)));
  const auto& ops = pipeline.document.ops();
  const auto layer = std::ranges::find(ops, "Linear", &DocumentOp::operation);
  ASSERT_NE(layer, ops.end());
  EXPECT_EQ(weightOf(pipeline, layer->id + ".weight")[1], 6.0);
}

/// Codes [4, 3] of int8, with one scale and zero point a column.
TEST(OnnxLayers, AreDequantizedByColumns) {
  ::onnx::ModelProto layer = model();
  auto& codes = *layer.mutable_graph()->add_initializer();
  codes.set_name("codes");
  codes.set_data_type(::onnx::TensorProto::INT8);
  codes.add_dims(4);
  codes.add_dims(3);
  for (int i = 0; i < 12; ++i) codes.add_int32_data(i - 6);
  auto& zeros = *layer.mutable_graph()->add_initializer();
  zeros.set_name("zeros");
  zeros.set_data_type(::onnx::TensorProto::INT8);
  zeros.add_dims(3);
  const std::array<std::int8_t, 3> points = {0, 1, -1};
  zeros.set_raw_data(points.data(), points.size());
  constant(layer, "scales", {3}, {1.0F, 0.5F, 2.0F});
  add(layer, "DequantizeLinear", {"codes", "scales", "zeros"}, {"w"});
  add(layer, "MatMul", {"x", "w"}, {"y"});
  const ImportedPipeline pipeline = imported(layer);
  ASSERT_EQ(operationsOf(pipeline.document), Texts{"Linear"});
  EXPECT_EQ(weightOf(pipeline, "y.weight"), (std::vector<double>{-6, -3, 0, 3, -3, -1.5, 0, 1.5, -6, 0, 6, 12}));
  EXPECT_TRUE(std::ranges::any_of(
      pipeline.notes, [](const std::string& note) { return has(note, "y: the weight is quantized in the model"); }));
}

TEST(OnnxLayers, ComeToAnEndInRings) {
  ::onnx::ModelProto ring = model();
  constant(ring, "w", {4, 3}, counted(12));
  add(ring, "Not", {"b"}, {"a"});
  add(ring, "Not", {"a"}, {"b"});
  add(ring, "Where", {"a", "x", "x"}, {"s"});
  add(ring, "Identity", {"d"}, {"c"});
  add(ring, "Identity", {"c"}, {"d"});
  add(ring, "MatMul", {"s", "w"}, {"y"});
  add(ring, "MatMul", {"d", "w"}, {"z"});
  ring.mutable_graph()->add_output()->set_name("z");
  const Result<ImportedPipeline> imported = importOnnxModel(ring.SerializeAsString(), "ring.onnx");
  EXPECT_TRUE(imported || !imported.error().message.empty());
}

// ---- nodes that an External keeps

/// Two layers around cos(p + table), with a table that is too large for a text.
::onnx::ModelProto aroundCos() {
  ::onnx::ModelProto around = model();
  constant(around, "w", {4, 64}, counted(256));
  constant(around, "table", {2, 64}, counted(128));
  add(around, "MatMul", {"x", "w"}, {"p"});
  add(around, "Add", {"p", "table"}, {"s"});
  add(around, "Cos", {"s"}, {"c"});
  constant(around, "w2", {64, 3}, counted(192));
  add(around, "MatMul", {"c", "w2"}, {"y"});
  for (const char* const name : {"p", "c"}) declare(*around.mutable_graph()->add_value_info(), name, {2, 64});
  return around;
}

TEST(OnnxKeptNodes, AreWrittenAgainBetweenTheOps) {
  const ImportedPipeline pipeline = imported(aroundCos());
  ASSERT_EQ(operationsOf(pipeline.document), (Texts{"Linear", "External", "Linear"}));
  const Result<::onnx::ModelProto> written = exportedWith(pipeline, true);
  ASSERT_TRUE(written) << written.error().message;
  const Texts types = typesIn(written->graph());
  const auto cos = std::ranges::find(types, "Cos");
  ASSERT_NE(cos, types.end());
  EXPECT_LT(std::ranges::find(types, "MatMul"), cos);
  EXPECT_EQ(written->graph().input_size(), 1);
  EXPECT_EQ(written->graph().output_size(), 1);
  const std::string id = pipeline.document.ops()[1].id;
  const auto& constants = written->graph().initializer();
  const auto table = std::ranges::find(constants, id + "/constant1", &::onnx::TensorProto::name);
  ASSERT_NE(table, constants.end());
  EXPECT_EQ(table->raw_data().size(), 128 * sizeof(float));
}

TEST(OnnxKeptNodes, NeedTheConstantsThatTheModelHad) {
  const Result<::onnx::ModelProto> written = exportedWith(imported(aroundCos()), false);
  ASSERT_FALSE(written);
  EXPECT_TRUE(has(written.error().message, ".constant1: constants of the imported model, which are not in this file."))
      << written.error().message;
}

TEST(OnnxKeptNodes, RefuseATextThatIsNone) {
  ::onnx::GraphProto graph;
  OnnxOpsets opsets;
  for (const char* const text : {"", "AAAA", "no base64"}) {
    const auto written = writeKeptNodes(text, {.id = "attn", .inputs = {"a"}, .outputs = {"b"}}, graph, opsets);
    ASSERT_FALSE(written);
    EXPECT_TRUE(has(written.error().message, "attn (External): attribute `nodes` does not match"))
        << written.error().message;
  }
}

TEST(OnnxKeptNodes, AreInTheFormOfTheNewestOpset) {
  ::onnx::ModelProto old = model();
  old.mutable_opset_import(0)->set_version(11);
  ::onnx::NodeProto& node = add(old, "Squeeze", {"x"}, {"y"});
  ::onnx::AttributeProto& axes = *node.add_attribute();
  axes.set_name("axes");
  axes.set_type(::onnx::AttributeProto::INTS);
  axes.add_ints(0);
  const OnnxReading reading(old.graph());
  const auto kept = keepNodes(reading, old.opset_import(), {.inputs = {"x"}, .outputs = {"y"}}, {}, {});
  ASSERT_TRUE(kept);
  ::onnx::GraphProto graph;
  OnnxOpsets opsets;
  opsets.Add()->set_version(20);
  ASSERT_TRUE(writeKeptNodes(kept->text, {.id = "s", .inputs = {"a"}, .outputs = {"b"}}, graph, opsets));
  ASSERT_EQ(graph.node(0).input_size(), 2);
  EXPECT_EQ(graph.node(0).input(0), "a");
  EXPECT_EQ(graph.node(0).output(0), "b");
  EXPECT_EQ(graph.node(0).attribute_size(), 0);
  EXPECT_EQ(graph.initializer(0).int64_data(0), 0);
  EXPECT_EQ(opsets.Get(0).version(), 20);
}

TEST(OnnxKeptNodes, StandInAnOrderInWhichTheyRun) {
  ::onnx::ModelProto unsorted = model();
  add(unsorted, "Cos", {"b"}, {"y"});
  add(unsorted, "Sin", {"x"}, {"a"});
  add(unsorted, "Neg", {"a"}, {"b"});
  sortNodes(*unsorted.mutable_graph());
  EXPECT_EQ(typesIn(unsorted.graph()), (Texts{"Sin", "Neg", "Cos"}));
}

}  // namespace
}  // namespace fuseline::testing
