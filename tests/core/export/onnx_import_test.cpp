// Pipelines out of ONNX models: those that were exported, graphs of other programs, and bytes that are neither.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_import.h"
#include "core/document/json_text.h"
#include "core/edit/apply_edit.h"
#include "core/export/onnx/onnx_proto.h"
#include "core/export/pipeline_exporter.h"
#include "tests/core/export/onnx_models.h"
#include "tests/support/text.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::testing {
namespace {

std::string modelOf(const PipelineDocument& document) {
  const AnalysisOptions options;
  const Analysis analysis = analyze(document, options);
  const Result<PipelineText> exported = findPipelineExporter("onnx")->write(
      {.name = "sample", .document = document, .options = options, .analysis = analysis});
  if (!exported) throw std::invalid_argument(exported.error().message);
  return *contentOf(*exported);
}

/// Every template and example except those with collectives and those with ops that cannot be exported to ONNX.
std::vector<PipelineDocument> exportable() {
  std::vector<PipelineDocument> documents;
  const auto add = [&](PipelineDocument document) {
    const std::string text = serialize(document);
    if (!has(text, "tensor_parallel") && !has(text, "\"DotProductAttention\""))
      documents.push_back(std::move(document));
  };
  for (const DocumentTemplate& each : documentTemplates()) add(parseDocument(each.text).document);
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(FUSELINE_SOURCE_DIR) / "resources/examples"))
    if (file.path().extension() == ".fuseline") add(loadDocument(file.path())->document);
  return documents;
}

TEST(OnnxImport, GivesBackWhatWasExported) {
  ASSERT_GT(exportable().size(), 12U);
  for (const PipelineDocument& document : exportable()) {
    const Result<ImportedPipeline> imported = importOnnxModel(modelOf(document), "sample.onnx");
    ASSERT_TRUE(imported.hasValue()) << imported.error().message;
    EXPECT_EQ(imported->document, document);
  }
}

/// The basic ops of a pipeline in inference and their specs, in the order of the graph. Residuals may be split in
/// another way, and a pipeline without a recipe is meant.
std::vector<std::string> computedBy(const PipelineDocument& document) {
  const LoweredGraph lowered = lower(document, {.pass = ExecutionMode::Inference});
  std::vector<std::string> lines;
  for (const Node& node : lowered.graph.nodes()) {
    if (node.operation->name == "MakeExtraOutput") continue;
    std::string line =
        fmt::format("{} -> {}", node.operation->name, toString(lowered.graph.value(node.outputs[0]).spec));
    for (const TensorSpec& parameter : node.parameters) line += ", " + toString(parameter);
    for (const char* name : {"eps", "scale"})
      if (node.attributes.has(name))
        line += fmt::format(", {} {}", name, static_cast<float>(node.attributes.real(name)));
    lines.push_back(line);
  }
  return lines;
}

/// A graph has numbers where a pipeline has symbols: those are given in its export.
PipelineDocument withRows(PipelineDocument document, std::int64_t rows) {
  if (document.symbols().contains("M")) (void)applyEdit(document, SetSymbol{.name = "M", .value = rows});
  return document;
}

// Groups of rows are cut by sizes that come with the data, which no pattern is for.
TEST(OnnxImport, FindsTheOpsInTheGraphItself) {
  int numRead = 0;
  for (const PipelineDocument& each : exportable()) {
    const bool isGrouped =
        std::ranges::any_of(each.ops(), [](const DocumentOp& op) { return op.operation == "GroupedLinear"; });
    if (isGrouped) continue;
    const PipelineDocument document = withRows(each, 128);
    const Result<ImportedPipeline> imported = importOnnxModel(withoutMetadata(modelOf(document)), "sample.onnx");
    ASSERT_TRUE(imported.hasValue()) << imported.error().message;
    EXPECT_EQ(computedBy(imported->document), computedBy(document));
    ++numRead;
  }
  EXPECT_GE(numRead, 12);
}

TEST(OnnxImport, ReadsTheGraphWhereItWasChanged) {
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(modelOf(parseDocument(findTemplate("linear-bias")->text).document)));
  for (auto& node : *model.mutable_graph()->mutable_node())
    for (auto* names : {node.mutable_input(), node.mutable_output()})
      for (std::string& name : *names)
        if (name == "y") name = "before";
  ::onnx::NodeProto& relu = *model.mutable_graph()->add_node();
  relu.set_op_type("Relu");
  relu.set_name("added");
  relu.add_input("before");
  relu.add_output("y");
  const Result<ImportedPipeline> imported = importOnnxModel(model.SerializeAsString(), "sample.onnx");
  ASSERT_TRUE(imported.hasValue()) << imported.error().message;
  ASSERT_TRUE(imported->document.findOp("added"));
  EXPECT_EQ(imported->document.findOp("added")->operation, "ReLU");
  const auto added = std::ranges::find(imported->nodes, "added", &ImportedNodes::op);
  ASSERT_NE(added, imported->nodes.end());
  EXPECT_EQ(added->nodes, std::vector<std::string>{"added (Relu)"});
  std::vector<std::string> all;
  for (const ImportedNodes& row : imported->nodes) all.insert(all.end(), row.nodes.begin(), row.nodes.end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "a node is of one op";
  EXPECT_GT(all.size(), 1U);
}

TEST(OnnxImport, ReadsTheGraphWhereANumberWasChanged) {
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(modelOf(parseDocument(findTemplate("residual-norm")->text).document)));
  const float eps = 0.5F;
  int numChanged = 0;
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() != "1e-05") continue;
    tensor.set_raw_data(&eps, sizeof(eps));
    ++numChanged;
  }
  ASSERT_EQ(numChanged, 1);
  const Result<ImportedPipeline> imported = importOnnxModel(model.SerializeAsString(), "sample.onnx");
  ASSERT_TRUE(imported.hasValue()) << imported.error().message;
  ASSERT_TRUE(imported->document.findOp("norm"));
  EXPECT_EQ(imported->document.findOp("norm")->attributes["eps"], 0.5);
}

// ---- graphs of other programs

/// Builds a model node by node, as an exporter of PyTorch would write it.
class Model {
 public:
  Model& input(const std::string& name, const std::vector<std::string>& extents, int type = 1) {
    auto& info = *m_model.mutable_graph()->add_input();
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    for (const std::string& extent : extents) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      std::isdigit(static_cast<unsigned char>(extent.front())) != 0 ? dim.set_dim_value(std::stoll(extent))
                                                                    : dim.set_dim_param(extent);
    }
    return *this;
  }

  Model& weight(const std::string& name, const Shape& shape, float value = 0.5F) {
    auto& tensor = *m_model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(1);
    for (const std::int64_t extent : shape) tensor.add_dims(extent);
    for (std::int64_t i = 0; i < numElements(shape); ++i) tensor.add_float_data(value);
    return *this;
  }

  /// 0.5 is 3F00 in bf16.
  Model& bf16Weight(const std::string& name, const Shape& shape) {
    weight(name, shape);
    auto& tensor = *m_model.mutable_graph()->mutable_initializer()->rbegin();
    tensor.set_data_type(16);
    for (int i = 0; i < tensor.float_data_size(); ++i) tensor.add_int32_data(0x3F00);
    tensor.clear_float_data();
    return *this;
  }

  Model& number(const std::string& name, float value) {
    weight(name, {});
    m_model.mutable_graph()->mutable_initializer()->rbegin()->set_float_data(0, value);
    return *this;
  }

  Model& axes(const std::string& name, std::int64_t axis) { return integers(name, {axis}); }

  Model& integers(const std::string& name, const std::vector<std::int64_t>& values) {
    auto& tensor = *m_model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(7);
    tensor.add_dims(std::ssize(values));
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return *this;
  }

  Model& node(const std::string& type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
              const std::vector<std::pair<std::string, std::int64_t>>& attributes = {}) {
    auto& node = *m_model.mutable_graph()->add_node();
    node.set_op_type(type);
    node.set_name("/" + outputs.front());
    for (const std::string& name : inputs) node.add_input(name);
    for (const std::string& name : outputs) node.add_output(name);
    for (const auto& [name, value] : attributes) {
      auto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(::onnx::AttributeProto::INT);
      attribute.set_i(value);
    }
    return *this;
  }

  /// Elements as TensorProto stores them in its list of int32.
  Model& codes(const std::string& name, int type, const Shape& shape, const std::vector<int>& elements) {
    auto& tensor = *m_model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const std::int64_t extent : shape) tensor.add_dims(extent);
    for (const int element : elements) tensor.add_int32_data(element);
    return *this;
  }

  /// The permutation of the last node.
  Model& order(const std::vector<std::int64_t>& axes) {
    auto& attribute = *m_model.mutable_graph()->mutable_node()->rbegin()->add_attribute();
    attribute.set_name("perm");
    attribute.set_type(::onnx::AttributeProto::INTS);
    for (const std::int64_t axis : axes) attribute.add_ints(axis);
    return *this;
  }

  /// The domain of the last node.
  Model& domain(const std::string& name) {
    m_model.mutable_graph()->mutable_node()->rbegin()->set_domain(name);
    return *this;
  }

  Model& text(const std::string& name, const std::string& value) {
    auto& attribute = *m_model.mutable_graph()->mutable_node()->rbegin()->add_attribute();
    attribute.set_name(name);
    attribute.set_type(::onnx::AttributeProto::STRING);
    attribute.set_s(value);
    return *this;
  }

  Model& output(const std::string& name) {
    m_model.mutable_graph()->add_output()->set_name(name);
    return *this;
  }

  Model& opset(std::int64_t version) {
    m_model.add_opset_import()->set_version(version);
    return *this;
  }

  /// An exporter's declaration of a tensor within the graph.
  Model& noted(const std::string& name, const std::vector<std::string>& extents, int type = 1) {
    auto& graph = *m_model.mutable_graph();
    input(name, extents, type);
    *graph.add_value_info() = graph.input(graph.input_size() - 1);
    graph.mutable_input()->RemoveLast();
    return *this;
  }

  std::string bytes() const { return m_model.SerializeAsString(); }
  Result<ImportedPipeline> imported() const { return importOnnxModel(bytes(), "other.onnx", {.isStrict = true}); }
  /// The remaining pipeline if nodes are left out.
  Result<ImportedPipeline> cut() const { return importOnnxModel(bytes(), "other.onnx", {.keepsFlat = true}); }
  Result<ImportedPipeline> weighted() const { return importOnnxModel(bytes(), "other.onnx", {.takesWeights = true}); }
  /// With layers as instances of a block.
  Result<ImportedPipeline> folded() const { return importOnnxModel(bytes(), "other.onnx"); }

 private:
  ::onnx::ModelProto m_model;
};

using Texts = std::vector<std::string>;

Texts operationsOf(const Result<ImportedPipeline>& imported) {
  if (!imported) throw std::invalid_argument(imported.error().message);
  Texts operations;
  for (const DocumentOp& op : imported->document.ops()) operations.push_back(op.operation);
  return operations;
}

Model mlpWithResidual() {
  Model model;
  model.input("tokens", {"batch", "seq", "8"}).weight("ln.w", {8}).weight("ln.b", {8}).weight("w1", {8, 16});
  model.weight("b1", {16}).weight("w2", {16, 8});
  model.node("LayerNormalization", {"tokens", "ln.w", "ln.b"}, {"normed"})
      .node("MatMul", {"normed", "w1"}, {"wide"})
      .node("Add", {"b1", "wide"}, {"biased"})
      .node("Gelu", {"biased"}, {"activated"})
      .text("approximate", "tanh")
      .node("MatMul", {"activated", "w2"}, {"narrow"})
      .node("Add", {"tokens", "narrow"}, {"sum"})
      .output("sum");
  return model;
}

TEST(OnnxImport, ReadsABlockWithAResidual) {
  const Result<ImportedPipeline> imported = mlpWithResidual().imported();
  EXPECT_EQ(operationsOf(imported),
            (Texts{"MakeExtraOutput", "LayerNorm", "Linear", "GELU", "Linear", "AddExtraInput"}));
  const PipelineDocument& document = imported->document;
  EXPECT_EQ(document.symbols()["batch"], 1);
  EXPECT_TRUE(has(imported->notes.front(), "batch is dynamic in the model and 1 here"));
  EXPECT_EQ(document.findOp("biased")->attributes["bias"], true);
  EXPECT_EQ(document.findOp("narrow")->attributes["bias"], false);
  const LoweredGraph lowered = lower(document);
  EXPECT_FALSE(hasErrors(lowered.diagnostics));
  EXPECT_EQ(lowered.graph.value(lowered.graph.outputs()[0].value).spec.shape, (Shape{1, 128, 8}));
}

TEST(OnnxImport, ReadsFormsOfLayers) {
  Model gemm;
  gemm.input("x", {"4", "8"}).weight("w", {3, 8}).weight("b", {3});
  gemm.node("Gemm", {"x", "w", "b"}, {"y"}, {{"transB", 1}}).output("y");
  const Result<ImportedPipeline> imported = gemm.imported();
  EXPECT_EQ(operationsOf(imported), Texts{"Linear"});
  EXPECT_EQ(imported->document.ops()[0].attributes["in_features"], 8);
  EXPECT_EQ(imported->document.ops()[0].attributes["out_features"], 3);

  Model gate;
  gate.input("x", {"4", "8"}).node("Split", {"x"}, {"a", "b"}, {{"axis", -1}, {"num_outputs", 2}});
  gate.node("Sigmoid", {"a"}, {"s"}).node("Mul", {"s", "a"}, {"silu"}).node("Mul", {"b", "silu"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(gate.imported()), Texts{"SwiGLU"});

  Model whole;
  whole.input("x", {"4", "8"}).weight("g", {8}).node("RMSNormalization", {"x", "g"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(whole.imported()), Texts{"RMSNorm"});
}

/// x * (1 / sqrt(mean(x^2) + 0.25)) * g over an axis, as PyTorch writes it.
Model decomposedRmsNorm(std::int64_t axis) {
  Model model;
  model.input("x", {"4", "8"}).weight("g", {8}).number("two", 2).number("eps", 0.25F).number("one", 1);
  model.axes("axes", axis).node("Pow", {"x", "two"}, {"squares"}).node("ReduceMean", {"squares", "axes"}, {"mean"});
  model.node("Add", {"mean", "eps"}, {"shifted"}).node("Sqrt", {"shifted"}, {"root"});
  model.node("Div", {"one", "root"}, {"r"}).node("Mul", {"x", "r"}, {"n"}).node("Mul", {"g", "n"}, {"y"}).output("y");
  return model;
}

// PyTorch counts axes from the front where it knows how many there are.
TEST(OnnxImport, CountsAxesFromTheFrontToo) {
  Model gate;
  gate.input("x", {"4", "8"}).node("Split", {"x"}, {"a", "b"}, {{"axis", 1}, {"num_outputs", 2}});
  gate.node("Sigmoid", {"a"}, {"s"}).node("Mul", {"s", "a"}, {"silu"}).node("Mul", {"silu", "b"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(gate.imported()), Texts{"SwiGLU"});

  Model norm;
  norm.input("x", {"4", "8"}).weight("g", {8}).weight("b", {8});
  norm.node("LayerNormalization", {"x", "g", "b"}, {"y"}, {{"axis", 1}}).output("y");
  EXPECT_EQ(operationsOf(norm.imported()), Texts{"LayerNorm"});

  Model inner;  // its rank is declared in the graph
  inner.input("x", {"4", "8"}).noted("r", {"4", "8"}).weight("g", {8}).node("Relu", {"x"}, {"r"});
  inner.node("RMSNormalization", {"r", "g"}, {"y"}, {{"axis", 1}}).output("y");
  EXPECT_EQ(operationsOf(inner.imported()), (Texts{"ReLU", "RMSNorm"}));
  Model unknown;  // its rank is not declared anywhere
  unknown.input("x", {"4", "8"}).weight("g", {8}).node("Mystery", {"x"}, {"r"});
  unknown.node("RMSNormalization", {"r", "g"}, {"y"}, {{"axis", 1}}).output("y");
  EXPECT_FALSE(unknown.imported());
}

TEST(OnnxImport, ReadsRmsNormInPieces) {
  EXPECT_EQ(operationsOf(decomposedRmsNorm(1).imported()), Texts{"RMSNorm"});
  EXPECT_FALSE(decomposedRmsNorm(0).imported());

  const Result<ImportedPipeline> imported = decomposedRmsNorm(-1).imported();
  EXPECT_EQ(operationsOf(imported), Texts{"RMSNorm"});
  EXPECT_EQ(imported->document.ops()[0].attributes["eps"], 0.25);
}

/// As PyTorch writes it for opsets without Gelu: x (1 + erf(x / sqrt(2))) / 2, here with another half.
Model decomposedGelu(float half) {
  Model model;
  model.input("x", {"4", "8"}).number("root", 1.4142135F).number("one", 1).number("half", half);
  model.node("Div", {"x", "root"}, {"d"}).node("Erf", {"d"}, {"e"}).node("Add", {"e", "one"}, {"s"});
  model.node("Mul", {"x", "s"}, {"m"}).node("Mul", {"m", "half"}, {"y"}).output("y");
  return model;
}

/// x / 2 (1 + tanh(0.7978846 (x + 0.044715 x^3))), likewise.
Model decomposedTanhGelu(float cubic) {
  Model model;
  model.input("x", {"4", "8"}).number("half", 0.5F).number("three", 3).number("cubic", cubic).number("one", 1);
  model.number("factor", 0.7978846F).node("Mul", {"x", "half"}, {"h"}).node("Pow", {"x", "three"}, {"p"});
  model.node("Mul", {"p", "cubic"}, {"c"}).node("Add", {"x", "c"}, {"a"}).node("Mul", {"a", "factor"}, {"f"});
  model.node("Tanh", {"f"}, {"t"}).node("Add", {"t", "one"}, {"s"}).node("Mul", {"h", "s"}, {"y"}).output("y");
  return model;
}

TEST(OnnxImport, ReadsBothFormsOfGelu) {
  const auto formOf = [](const Result<ImportedPipeline>& imported) {
    EXPECT_EQ(operationsOf(imported), Texts{"GELU"});
    return imported->document.ops()[0].attributes.at("approximate");
  };
  Model whole;
  whole.input("x", {"4"}).node("Gelu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(formOf(whole.imported()), "none");
  EXPECT_EQ(formOf(decomposedGelu(0.5F).imported()), "none");
  EXPECT_EQ(formOf(decomposedTanhGelu(0.044715F).imported()), "tanh");
  for (const Model& other : {decomposedGelu(0.25F), decomposedTanhGelu(0.05F)}) {
    const Texts operations = operationsOf(other.cut());
    EXPECT_EQ(std::ranges::count(operations, "GELU"), 0);
  }
}

TEST(OnnxImport, NamesWhatItDoesNotUnderstand) {
  const Result<ImportedPipeline> otherAxis = decomposedRmsNorm(-2).imported();
  ASSERT_FALSE(otherAxis);
  EXPECT_TRUE(has(otherAxis.error().message, "/mean (ReduceMean)")) << otherAxis.error().message;

  Model model = mlpWithResidual();
  model.node("Softmax", {"sum"}, {"p"}).node("TopK", {"p"}, {"best"}).output("best");
  const Result<ImportedPipeline> imported = model.imported();
  ASSERT_FALSE(imported);
  EXPECT_TRUE(has(imported.error().message,
                  "other.onnx: 2 of 8 nodes have no op in Fuseline: /best (TopK), /p (Softmax). Without --strict the"))
      << imported.error().message;

  Model foreign;
  foreign.input("x", {"4"}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_TRUE(foreign.imported());
}

// A layer on both sides of a node that is no layer.
Model layersAroundSoftmax() {
  Model model;
  model.input("x", {"batch", "8"}).noted("p", {"batch", "8"}).weight("w1", {8, 8}).weight("w2", {8, 8});
  model.node("MatMul", {"x", "w1"}, {"scores"}).node("Shape", {"scores"}, {"extents"});
  model.node("Softmax", {"scores"}, {"p"}).node("MatMul", {"p", "w2"}, {"y"}).output("y").output("extents");
  return model;
}

/// Attributes of the first op of this kind.
Json attributesOf(const Result<ImportedPipeline>& imported, std::string_view operation) {
  const auto& ops = imported->document.ops();
  return std::ranges::find(ops, operation, &DocumentOp::operation)->attributes;
}

TEST(OnnxImport, MakesAnExternalOfWhatStandsBetweenOps) {
  const Result<ImportedPipeline> imported = layersAroundSoftmax().cut();
  EXPECT_EQ(operationsOf(imported), (Texts{"Linear", "External", "Linear"}));
  Json attributes = attributesOf(imported, "External");
  EXPECT_FALSE(attributes["nodes"].get<std::string>().empty()) << "for the export to ONNX";
  attributes.erase("nodes");
  EXPECT_EQ(attributes, (Json{{"outputs", "y = [batch, 8]"}, {"description", "1 node of the model: Softmax"}}));
  EXPECT_EQ(imported->notes[0],
            "1 of 4 nodes have no op in Fuseline, or are between such nodes: /extents (Shape). They were left out.");
  EXPECT_TRUE(std::ranges::any_of(imported->notes, [](const std::string& note) {
    return has(note, "1 node without an op became an External op, which is not executed: p.");
  }));
  const LoweredGraph lowered = lower(imported->document, {.pass = ExecutionMode::Inference});
  ASSERT_FALSE(hasErrors(lowered.diagnostics));
  EXPECT_EQ(lowered.graph.inputs().size(), 2U);
  EXPECT_EQ(lowered.graph.outputs().size(), 2U);
  EXPECT_EQ(toString(lowered.graph.value(lowered.graph.findValue("p.y")).spec), "[128, 8] f32");
}

// The scale in between belongs to it; the next layer determines an extent that the model does not declare.
TEST(OnnxImport, TakesWhatStandsBetweenIntoTheExternal) {
  Model model;
  model.input("x", {"4", "8"}).noted("p", {"4", "8"}).noted("q", {"4", "any"}).weight("w", {8, 6}).number("half", 0.5F);
  model.node("Softmax", {"x"}, {"p"}).node("Mul", {"p", "half"}, {"s"}).node("Softmax", {"s"}, {"q"});
  model.node("MatMul", {"q", "w"}, {"y"}).output("y");
  const Result<ImportedPipeline> imported = model.cut();
  EXPECT_EQ(operationsOf(imported), (Texts{"External", "Linear"}));
  EXPECT_EQ(imported->document.ops()[0].id, "attention");
  EXPECT_EQ(attributesOf(imported, "External")["outputs"], "y = [M, 8]");
  EXPECT_EQ(attributesOf(imported, "External")["description"], "3 nodes of the model: Softmax, Mul");
  EXPECT_EQ(imported->document.inputs().size(), 1U);
}

/// Two layers, which have a mask in common: it is computed of no tensor, and so ties nothing together.
Model twoLayers() {
  Model model;
  model.input("x", {"4", "8"}).number("one", 1.0F).node("Shape", {"x"}, {"shape"});
  model.node("ConstantOfShape", {"shape"}, {"mask"});
  std::string from = "x";
  for (const std::string layer : {"l0", "l1"}) {
    const auto named = [&](const char* tensor) { return layer + "/attn/" + tensor; };
    for (const char* part : {"q", "k", "v"}) {
      model.weight(named(part) + ".w", {8, 8});
      model.node("MatMul", {from, named(part) + ".w"}, {layer + "/" + part + "/product"});
    }
    const auto product = [&](const char* part) { return layer + "/" + part + "/product"; };
    model.node("Transpose", {product("k")}, {named("kt")}).node("MatMul", {product("q"), named("kt")}, {named("s")});
    model.node("Where", {"mask", named("s"), "one"}, {named("m")}).node("Softmax", {named("m")}, {named("p")});
    model.node("MatMul", {named("p"), product("v")}, {named("a")}).noted(named("a"), {"4", "8"});
    model.weight(named("o.w"), {8, 8}).node("MatMul", {named("a"), named("o.w")}, {layer + "/o/product"});
    model.node("Add", {from, layer + "/o/product"}, {layer + "/sum"});
    from = layer + "/sum";
  }
  return std::move(model.output(from));
}

TEST(OnnxImport, MakesAnExternalOfEachAttention) {
  const Result<ImportedPipeline> imported = twoLayers().cut();
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(std::ranges::count(operationsOf(imported), "External"), 2);
  EXPECT_EQ(std::ranges::count(operationsOf(imported), "Linear"), 8);
  EXPECT_EQ(std::ranges::count(operationsOf(imported), "MakeExtraOutput"), 2) << "the residuals go around";
  EXPECT_EQ(imported->document.inputs().size(), 1U);
  EXPECT_EQ(imported->document.outputs().size(), 1U);
  EXPECT_EQ(attributesOf(imported, "External")["inputs"], "x2, x3");
}

/// As torch.onnx.export notes it, in a field that the library's message may not have.
TEST(OnnxImport, NamesOpsAfterModulesOfPyTorch) {
  ::onnx::ModelProto model;
  Model plain;
  plain.input("x", {"4", "8"}).weight("w", {8, 8}).node("MatMul", {"x", "w"}, {"linear_7"}).output("linear_7");
  ASSERT_TRUE(model.ParseFromString(plain.bytes()));
  ::onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
  node.set_name("node_linear_7");
  ::onnx::StringStringEntryProto entry;
  entry.set_key("pkg.torch.onnx.name_scopes");
  entry.set_value("['', 'model', 'model.layers.0', 'model.layers.0.q_proj', 'linear_7']");
  node.GetReflection()->MutableUnknownFields(&node)->AddLengthDelimited(9, entry.SerializeAsString());
  const Result<ImportedPipeline> imported = importOnnxModel(model.SerializeAsString(), "other.onnx");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->document.ops()[0].id, "model_layers_0_q_proj");
}

/// down(silu(gate x) * up x), as LLaMA has it. swaps: up x * silu(gate x).
Model gatedMlp(bool swaps = false) {
  Model model;
  model.input("x", {"4", "8"}).weight("wg", {8, 16}, 1.0F).weight("wu", {8, 16}, 2.0F).weight("wd", {16, 8});
  model.node("MatMul", {"x", "wg"}, {"gate"}).node("MatMul", {"x", "wu"}, {"up"}).node("Sigmoid", {"gate"}, {"s"});
  model.node("Mul", {"gate", "s"}, {"act"});
  model.node("Mul", swaps ? Texts{"up", "act"} : Texts{"act", "up"}, {"h"});
  return std::move(model.node("MatMul", {"h", "wd"}, {"y"}).output("y"));
}

TEST(OnnxImport, JoinsTheTwoLayersOfAGate) {
  for (const bool swaps : {false, true}) {
    const Result<ImportedPipeline> imported =
        importOnnxModel(gatedMlp(swaps).bytes(), "other.onnx", {.takesWeights = true});
    EXPECT_EQ(operationsOf(imported), (Texts{"Linear", "SwiGLU", "Linear"}));
    EXPECT_EQ(attributesOf(imported, "Linear")["out_features"], 32);
    EXPECT_TRUE(has(imported->notes[0], "gate: two layers of the model that form a gate became one layer"))
        << imported->notes[0];
    ASSERT_EQ(imported->weights.size(), 2U);
    EXPECT_EQ(toString(imported->weights[0].second.spec), "[32, 8] f32");
    const std::vector<double> numbers = imported->weights[0].second.toDoubles();
    EXPECT_TRUE(std::all_of(numbers.begin(), numbers.begin() + 128, [](double each) { return each == 1.0; }));
    EXPECT_TRUE(std::all_of(numbers.begin() + 128, numbers.end(), [](double each) { return each == 2.0; }));
  }
}

TEST(OnnxImport, LeavesTheLayersOfAGateApartThatOthersReadToo) {
  EXPECT_EQ(operationsOf(gatedMlp().output("gate").imported()),
            (Texts{"Linear", "Linear", "SiLU", "Formula", "Linear"}));
  EXPECT_EQ(operationsOf(gatedMlp().output("act").imported()),
            (Texts{"Linear", "Linear", "SiLU", "Formula", "Linear"}));
}

/// ONNX repeats the smaller one.
TEST(OnnxImport, TakesNoSumOfTensorsOfTwoShapes) {
  Model model;
  model.input("x", {"2", "4", "8"}).input("p", {"1", "4", "8"}).noted("s", {"2", "4", "8"}).weight("w", {8, 8});
  model.node("Add", {"x", "p"}, {"s"}).node("MatMul", {"s", "w"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(model.cut()), (Texts{"External", "Linear"}));
}

/// As onnx.shape_inference writes: unknown extents have separate names.
TEST(OnnxImport, TakesExtentsOfTwoNamesForTheSame) {
  Model model;
  model.input("x", {"batch", "8"}).noted("o", {"unk__7", "8"}).weight("w", {8, 8});
  model.node("MatMul", {"x", "w"}, {"o"}).node("Add", {"x", "o"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(model.imported()), (Texts{"MakeExtraOutput", "Linear", "AddExtraInput"}));
}

TEST(OnnxImport, TakesExtentsThatAreNoneForAny) {
  Model model;
  model.input("x", {"4", "8"}).noted("p", {"seq - 256", "8"}).weight("w", {8, 8});
  model.node("Softmax", {"x"}, {"p"}).node("MatMul", {"p", "w"}, {"y"}).output("y");
  const Result<ImportedPipeline> imported = model.cut();
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->document.symbols().size(), 1U);
}

/// Tensors that are computed in f32 within and converted for all consumers.
TEST(OnnxImport, DeclaresWhatIsReadOfAnExternal) {
  Model model;
  model.input("x", {"4", "8"}, 16).node("Cast", {"x"}, {"wide"}, {{"to", 1}}).node("Softmax", {"wide"}, {"p"});
  model.noted("p", {"4", "8"})
      .node("Cast", {"p"}, {"narrow"}, {{"to", 16}})
      .node("Relu", {"narrow"}, {"y"})
      .output("y");
  const Result<ImportedPipeline> imported = model.cut();
  ASSERT_EQ(operationsOf(imported), (Texts{"External", "ReLU"}));
  EXPECT_EQ(attributesOf(imported, "External")["outputs"], "y = [M, 8] bf16");
}

/// A sum of a model that reads what an External makes is left out, which makes no output of the pipeline of it.
TEST(OnnxImport, MakesNoOutputsOfWhatExternalsMake) {
  Model model;
  model.input("x", {"4", "8"}).node("Softmax", {"x"}, {"p"}).noted("p", {"4", "8"});
  model.node("Relu", {"p"}, {"y"}).node("Cos", {"p"}, {"c"}).output("y").output("c");
  const Result<ImportedPipeline> imported = model.cut();
  ASSERT_TRUE(imported.hasValue()) << imported.error().message;
  EXPECT_EQ(operationsOf(imported), (Texts{"External", "ReLU"}));
  ASSERT_EQ(imported->document.outputs().size(), 1U);
  EXPECT_EQ(imported->tensors.at(imported->document.outputs()[0].id), "y");
}

TEST(OnnxImport, NamesTensorsOfTheModelInFull) {
  const std::string name = "/model/" + std::string(200, 'n') + "/output_0";
  Model model;
  model.input("x", {"4", "8"}).node("Softmax", {"x"}, {name}).noted(name, {"4", "8"});
  const Result<ImportedPipeline> imported = model.node("Relu", {name}, {"y"}).output("y").cut();
  ASSERT_TRUE(imported.hasValue()) << imported.error().message;
  std::vector<std::string> names;
  for (const auto& [port, tensor] : imported->tensors) names.push_back(tensor);
  EXPECT_TRUE(std::ranges::find(names, name) != names.end()) << fmt::format("{}", names.size());
}

TEST(OnnxImport, TakesTheFirstOutputOfANormOnly) {
  Model model;
  model.input("x", {"4", "8"}).weight("g", {8}).weight("b", {8});
  model.node("LayerNormalization", {"x", "g", "b"}, {"n", "mean"}).node("Relu", {"n"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(model.output("mean").cut()), (Texts{"LayerNorm", "ReLU"}));
}

TEST(OnnxImport, FoldsLayersThatRepeat) {
  const Result<ImportedPipeline> imported = twoLayers().folded();
  EXPECT_EQ(operationsOf(imported), (Texts{"block:Layer", "block:Layer"}));
  EXPECT_EQ(imported->notes[0], "2 identical layers became instances of block Layer.");
  EXPECT_TRUE(std::ranges::any_of(imported->notes, [](const std::string& note) {
    return has(note, "External ops, which are not executed: layer.attn, layer2.attn.");
  }));
  EXPECT_FALSE(hasErrors(lower(imported->document, {.pass = ExecutionMode::Inference}).diagnostics));
}

TEST(OnnxImport, NamesWeightsByWhereTheirOpsWent) {
  const Result<ImportedPipeline> imported = importOnnxModel(twoLayers().bytes(), "other.onnx", {.takesWeights = true});
  ASSERT_TRUE(imported) << imported.error().message;
  const Graph graph = lower(imported->document, {.pass = ExecutionMode::Inference}).graph;
  std::set<std::string> expected, found;
  for (const Node& node : graph.nodes())
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
      expected.insert(node.parameterName(slot));
  for (const auto& [name, tensor] : imported->weights) found.insert(name);
  EXPECT_EQ(expected.size(), 8U);
  EXPECT_EQ(found, expected);
}

TEST(OnnxImport, LeavesOutWhatEndsAModel) {
  Model model;
  model.input("x", {"4", "8"}).weight("w", {8, 8}).node("MatMul", {"x", "w"}, {"scores"});
  model.node("Softmax", {"scores"}, {"p"}).output("p");
  const Result<ImportedPipeline> imported = model.cut();
  EXPECT_EQ(operationsOf(imported), Texts{"Linear"});
  EXPECT_TRUE(has(imported->notes[0], "/p (Softmax). They were left out.")) << imported->notes[0];
  EXPECT_EQ(imported->notes[1], "Inputs of nodes that were left out became outputs: scores.");
}

TEST(OnnxImport, NamesOutputsThatAreInputsOrConstants) {
  Model model;
  model.input("x", {"4", "8"}).weight("w", {8, 8}).node("MatMul", {"x", "w"}, {"y"});
  const Result<ImportedPipeline> imported = model.output("y").output("x").output("w").imported();
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_TRUE(std::ranges::any_of(imported->notes, [](const std::string& note) {
    return has(note, "left out, also by `export --to onnx`: x, w.");
  }));
}

TEST(OnnxImport, SaysWhichOutputsAnExternalMakes) {
  Result<ImportedPipeline> imported = layersAroundSoftmax().output("p").cut();
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->document.outputs().size(), 1U);
  EXPECT_TRUE(has(imported->notes[1], "Outputs of the model that an External op computes are left out: p."))
      << imported->notes[1];
}

TEST(OnnxImport, TakesNoLayerNormWithABiasForEachToken) {
  Model model;
  model.input("x", {"2", "4", "8"}).weight("g", {8}).weight("b", {4, 8}).weight("w", {8, 8});
  model.node("LayerNormalization", {"x", "g", "b"}, {"n"}).node("MatMul", {"n", "w"}, {"y"});
  EXPECT_EQ(operationsOf(model.output("y").cut()), (Texts{"External", "Linear"}));
}

TEST(OnnxImport, TakesNoLayerNormWithoutItsBias) {
  Model model;
  model.input("x", {"4", "8"}).input("beta", {"8"}).weight("g", {8}).noted("n", {"4", "8"}).weight("w", {8, 8});
  model.node("LayerNormalization", {"x", "g", "beta"}, {"n"}).node("MatMul", {"n", "w"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(model.cut()), (Texts{"External", "Linear"}));
}

TEST(OnnxImport, BeginsBehindAnEmbedding) {
  Model model;
  model.input("ids", {"batch", "seq"}, 7).weight("table", {100, 8});
  model.weight("w", {8, 8}).node("Gather", {"table", "ids"}, {"rows"}).node("MatMul", {"rows", "w"}, {"y"}).output("y");
  const Result<ImportedPipeline> imported = model.cut();
  EXPECT_EQ(operationsOf(imported), Texts{"Linear"});
  EXPECT_EQ(imported->document.symbols().size(), 2U);
  const LoweredGraph lowered = lower(imported->document, {.pass = ExecutionMode::Inference});
  EXPECT_EQ(lowered.graph.value(lowered.graph.inputs()[0]).spec.shape, (Shape{1, 128, 8}));
}

// As PyTorch writes a normalization in bf16: it computes in f32, with a weight that was converted when it was exported.
TEST(OnnxImport, TakesTheDtypeThatResultsAreConvertedTo) {
  Model model;
  model.input("x", {"4", "8"}, 16).weight("g", {8}).weight("w", {8, 8}).node("Cast", {"x"}, {"c"}, {{"to", 1}});
  model.node("RMSNormalization", {"c", "g"}, {"n"}).node("Cast", {"n"}, {"b"}, {{"to", 16}});
  model.node("MatMul", {"b", "w"}, {"y"}).output("y");
  const Result<ImportedPipeline> imported = model.imported();
  EXPECT_EQ(operationsOf(imported), (Texts{"RMSNorm", "Linear"}));
  EXPECT_EQ(imported->document.ops()[0].attributes["dtype"], "bf16");
  EXPECT_EQ(imported->document.ops()[1].attributes["dtype"], "f32");
}

// Stored in fewer bits: the product is one in float32.
TEST(OnnxImport, TakesTheDtypeThatAWeightIsConvertedTo) {
  Model model;
  model.input("x", {"4", "8"}).bf16Weight("w", {8, 8}).node("Cast", {"w"}, {"c"}, {{"to", 1}});
  const Result<ImportedPipeline> imported = model.node("MatMul", {"x", "c"}, {"y"}).output("y").weighted();
  ASSERT_EQ(operationsOf(imported), Texts{"Linear"});
  EXPECT_EQ(imported->weights.at(0).second.spec.dtype, DType::F32);
  EXPECT_EQ(imported->weights.at(0).second.toDoubles().front(), 0.5);
}

/// The weight of a layer that a model quantizes to unsigned integers of 8 bits and back, in steps of 0.25.
double quantizedAndBack(float weight) {
  Model model;
  model.input("x", {"4", "8"}).weight("w", {8, 8}, weight).number("s", 0.25F);
  model.node("QuantizeLinear", {"w", "s"}, {"q"}).node("DequantizeLinear", {"q", "s"}, {"d"});
  const Result<ImportedPipeline> imported = model.node("MatMul", {"x", "d"}, {"y"}).output("y").weighted();
  if (operationsOf(imported) != Texts{"Linear"}) throw std::invalid_argument("no Linear");
  return imported->weights.at(0).second.toDoubles().front();
}

// The standard: saturate(round_half_to_even(x / scale)).
TEST(OnnxImport, QuantizesWeightsAsTheModelDoes) {
  EXPECT_EQ(quantizedAndBack(0.37F), 0.25);
  EXPECT_EQ(quantizedAndBack(0.375F), 0.5);  // 1.5 steps
  EXPECT_EQ(quantizedAndBack(0.625F), 0.5);  // 2.5 steps
  EXPECT_EQ(quantizedAndBack(-1.0F), 0.0);
  EXPECT_EQ(quantizedAndBack(100.0F), 63.75);
}

/// Notes about a layer with these weights whose results are converted to f16 and back.
Texts notesOnRounding(float weight, const char* between = "Identity") {
  Model model;
  model.input("x", {"M", "8"})
      .weight("w", {8, 8}, weight)
      .node("MatMul", {"x", "w"}, {"a"})
      .node(between, {"a"}, {"c"});
  model.node("Cast", {"c"}, {"h"}, {{"to", 10}}).node("Cast", {"h"}, {"f"}, {{"to", 1}}).node("Relu", {"f"}, {"y"});
  return model.output("y").imported()->notes;
}

// 0.1 is no f16 number, so that the layer was none in f16 before it was exported.
TEST(OnnxImport, NamesConversionsThatRound) {
  constexpr const char* kNote = "y: the model rounds to f16 here, and the pipeline does not: results differ slightly.";
  EXPECT_EQ(notesOnRounding(0.1F)[0], kNote);
  EXPECT_EQ(notesOnRounding(0.5F, "Relu")[0], kNote);
}

TEST(OnnxImport, NamesConversionsOfTheResult) {
  Model model;
  model.input("x", {"M", "8"}).weight("w", {8, 8}, 0.1F).node("MatMul", {"x", "w"}, {"a"});
  const auto imported = model.node("Cast", {"a"}, {"y"}, {{"to", 16}}).output("y").imported();
  EXPECT_TRUE(has(imported->notes[0], "y: the model rounds to bf16 here")) << imported->notes[0];
}

TEST(OnnxImport, NamesOpsetsThatItDoesNotKnow) {
  const auto imported = [](std::int64_t opset) {
    Model model;
    return model.opset(opset).input("x", {"M", "8"}).node("Relu", {"x"}, {"y"}).output("y").imported();
  };
  EXPECT_FALSE(has(imported(27)->notes.back(), "opset")) << imported(27)->notes.back();
  EXPECT_TRUE(has(imported(99)->notes.back(), "the nodes of opset 99 are read as those of opset 27"));
  EXPECT_EQ(imported(0).error().message, "other.onnx: found opset 0; expected 1 to 27. Export the model again.");
  EXPECT_FALSE(imported(-3));
}

TEST(OnnxImport, TakesNoSumOfExtentsForAnOp) {
  Model model;
  model.input("x", {"4", "8"}).noted("p", {"4", "8"}).weight("w", {8, 8}).node("Shape", {"x"}, {"shape"});
  model.node("Add", {"shape", "shape"}, {"twice"}).node("Expand", {"x", "twice"}, {"p"});
  model.node("MatMul", {"p", "w"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(model.cut()), (Texts{"External", "Linear"}));
}

TEST(OnnxImport, CutsOnlyWhereTheShapeIsKnown) {
  Model model;
  model.input("x", {"4", "8"}).node("Softmax", {"x"}, {"p"}).node("Relu", {"p"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(model.cut()), (Texts{"External", "ReLU"})) << "Softmax keeps the shape";
  Model unknown;
  unknown.input("x", {"4", "8"}).weight("w", {8, 8}).node("Mystery", {"x"}, {"p"}).node("Relu", {"p"}, {"y"});
  unknown.node("MatMul", {"x", "w"}, {"z"}).output("y").output("z");
  const Result<ImportedPipeline> rest = unknown.cut();
  EXPECT_EQ(operationsOf(rest), Texts{"Linear"}) << "one node does not refuse a model";
  EXPECT_TRUE(has(rest->notes[0], "/p (Mystery)")) << rest->notes[0];
  Model foreign;
  foreign.input("x", {"4", "8"}).node("Softmax", {"x"}, {"y"}).output("y");
  EXPECT_EQ(foreign.cut().error().message,
            "other.onnx: 1 of 1 nodes have no op in Fuseline: /y (Softmax). Nothing remains to import.");
}

// onnxruntime refuses them too: "Duplicate definition of name".
TEST(OnnxImport, RefusesTwoProducersOfOneTensor) {
  Model nodes;
  nodes.input("x", {"4", "8"}).weight("w", {8, 8}).node("MatMul", {"x", "w"}, {"h"}).node("Relu", {"x"}, {"h"});
  nodes.node("Sigmoid", {"h"}, {"y"}).output("y");
  EXPECT_EQ(nodes.cut().error().message,
            "other.onnx: MatMul and Relu produce the same tensor, h; expected one producer. Export the model again.");
  Model itself;
  itself.input("x", {"4", "8"}).node("Relu", {"x"}, {"x"}).output("x");
  EXPECT_TRUE(has(itself.cut().error().message, "an input and Relu produce the same tensor, x"));
  Model weights;
  weights.input("x", {"4", "8"}).weight("w", {8, 8}).weight("w", {8, 4}).node("MatMul", {"x", "w"}, {"y"}).output("y");
  EXPECT_TRUE(has(weights.cut().error().message, "an initializer and an initializer produce the same tensor, w"));
  Model older;
  older.input("x", {"4", "8"}).input("w", {"8", "8"}).weight("w", {8, 8}).node("MatMul", {"x", "w"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(older.cut()), Texts{"Linear"}) << "the default of an input, as before IR version 4";
}

TEST(OnnxImport, NamesFunctionsThatCallThemselves) {
  ::onnx::ModelProto model;
  model.ParseFromString(Model().input("x", {"4"}).node("R", {"x"}, {"y"}).domain("own").output("y").bytes());
  auto& function = *model.add_functions();
  function.set_name("R");
  function.set_domain("own");
  *function.add_node() = model.graph().node(0);
  const Result<ImportedPipeline> imported = importOnnxModel(model.SerializeAsString(), "other.onnx");
  ASSERT_FALSE(imported);
  EXPECT_TRUE(has(imported.error().message, "the function R calls itself")) << imported.error().message;
}

TEST(OnnxImport, CountsNodesAndTensorsWithoutProducerApart) {
  Model model;
  model.input("x", {"4", "8"}).node("MatMul", {"x", "nothing"}, {"y"}).output("y");
  EXPECT_EQ(model.cut().error().message,
            "other.onnx: 1 of 1 nodes have no op in Fuseline: /y (MatMul). No node produces nothing. Nothing remains "
            "to import.");
}

TEST(OnnxImport, NamesFloat64) {
  Model model;
  model.input("x", {"4", "8"}, 11).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_TRUE(has(model.cut().error().message, "The model computes in float64")) << model.cut().error().message;
}

TEST(OnnxImport, RefusesOtherInputsAndOtherFiles) {
  Model model;
  model.input("ids", {"4"}, 7).node("Cast", {"ids"}, {"x"}, {{"to", 1}}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_TRUE(has(model.imported().error().message, "/x (Cast)")) << model.imported().error().message;
  EXPECT_EQ(operationsOf(model.cut()), Texts{"ReLU"}) << "the conversion is left out";
  EXPECT_TRUE(has(importOnnxModel("no model at all", "x.onnx").error().message, "x.onnx: expected an ONNX model"));
  EXPECT_FALSE(importOnnxModel("", "x.onnx"));
  EXPECT_TRUE(has(importOnnx("nowhere.onnx").error().message, "nowhere.onnx"));
}

TEST(OnnxImport, ComesToAnEndInRings) {
  Model model;
  model.input("x", {"4"}).node("Identity", {"b"}, {"a"}).node("Identity", {"a"}, {"b"}).output("a");
  EXPECT_FALSE(model.imported());
  Model sums;
  sums.input("x", {"4"}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("a");
  EXPECT_TRUE(has(sums.imported().error().message, "do not form a valid pipeline")) << sums.imported().error().message;
}

// ---- any bytes

std::string mutated(std::string bytes) {
  const int numChanges = *rc::gen::inRange(1, 6);
  for (int i = 0; i < numChanges && !bytes.empty(); ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    switch (*rc::gen::inRange(0, 4)) {
      case 0: bytes[at] = *rc::gen::arbitrary<char>(); break;
      case 1: bytes.erase(at, *rc::gen::inRange<std::size_t>(1, 12)); break;
      case 2: bytes.insert(at, bytes.substr(at, *rc::gen::inRange<std::size_t>(1, 60))); break;
      default: bytes.resize(at); break;
    }
  }
  return bytes;
}

// ---- any order of operations

/// With its weights, by name.
std::map<std::string, std::vector<double>> weightsOf(const Model& model) {
  const Result<ImportedPipeline> imported =
      importOnnxModel(model.bytes(), "other.onnx", {.isStrict = true, .takesWeights = true});
  if (!imported) throw std::invalid_argument(imported.error().message);
  if (imported->weightsProblem) throw std::invalid_argument(imported->weightsProblem->message);
  std::map<std::string, std::vector<double>> weights;
  for (const auto& [name, tensor] : imported->weights) weights[name] = tensor.toDoubles();
  return weights;
}

/// x [4, 8], gamma of 0.5, beta of 0.25, and mean, the mean of x.
Model normOf(const char* variance) {
  Model model;
  model.input("x", {"4", "8"}).weight("gamma", {8}).weight("beta", {8}, 0.25F).number("eps", 1e-3F).number("two", 2);
  model.axes("axes", -1).node("ReduceMean", {"x", "axes"}, {"mean"});
  if (variance == std::string("of squares"))
    return model.node("Mul", {"x", "x"}, {"squares"})
        .node("ReduceMean", {"squares", "axes"}, {"all"})
        .node("Mul", {"mean", "mean"}, {"square"})
        .node("Sub", {"all", "square"}, {"variance"});
  return model.node("ReduceMean", {"x", "axes"}, {"again"})
      .node("Sub", {"x", "again"}, {"difference"})
      .node("Mul", {"difference", "difference"}, {"squares"})
      .node("ReduceMean", {"squares", "axes"}, {"variance"});
}

/// x (gamma / root) + (beta - mean (gamma / root)), as Keras writes it.
Model& asKeras(Model& model) {
  return model.node("Add", {"variance", "eps"}, {"shifted"})
      .node("Sqrt", {"shifted"}, {"root"})
      .node("Reciprocal", {"root"}, {"r"})
      .node("Mul", {"r", "gamma"}, {"factor"})
      .node("Mul", {"x", "factor"}, {"scaled"})
      .node("Mul", {"mean", "factor"}, {"moved"})
      .node("Sub", {"beta", "moved"}, {"rest"})
      .node("Add", {"scaled", "rest"}, {"y"})
      .output("y");
}

/// (x - mean) / root * gamma + beta, as PyTorch writes it for a model that has no layer for it.
Model& asPyTorch(Model& model) {
  return model.node("Sub", {"x", "mean"}, {"centred"})
      .node("Add", {"eps", "variance"}, {"shifted"})
      .node("Sqrt", {"shifted"}, {"root"})
      .node("Div", {"centred", "root"}, {"n"})
      .node("Mul", {"gamma", "n"}, {"g"})
      .node("Add", {"g", "beta"}, {"y"})
      .output("y");
}

TEST(OnnxImport, ReadsLayerNormInAnyOrder) {
  for (const char* const variance : {"of squares", "of differences"})
    for (Model& (*const rest)(Model&) : {asKeras, asPyTorch}) {
      Model model = normOf(variance);
      rest(model);
      const Result<ImportedPipeline> imported = model.imported();
      EXPECT_EQ(operationsOf(imported), Texts{"LayerNorm"}) << variance;
      EXPECT_EQ(imported->document.ops()[0].attributes["eps"], 1e-3);
      const auto weights = weightsOf(model);
      EXPECT_EQ(weights.at("y.weight"), std::vector<double>(8, 0.5));
      EXPECT_EQ(weights.at("y.bias"), std::vector<double>(8, 0.25));
    }
}

TEST(OnnxImport, ReadsFactorsOfNormsInAnyOrder) {
  Model rms;  // x (gamma / root)
  rms.input("x", {"4", "8"}).weight("gamma", {8}).number("two", 2).number("eps", 0.25F).axes("axes", -1);
  rms.node("Pow", {"x", "two"}, {"squares"}).node("ReduceMean", {"squares", "axes"}, {"mean"}, {{"keepdims", 0}});
  rms.node("Unsqueeze", {"mean", "axes"}, {"kept"}).node("Add", {"kept", "eps"}, {"shifted"});
  rms.node("Sqrt", {"shifted"}, {"root"}).node("Div", {"gamma", "root"}, {"factor"});
  rms.node("Mul", {"x", "factor"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(rms.imported()), Texts{"RMSNorm"});

  Model l2;  // x / max(|x|, eps)
  l2.input("x", {"4", "8"}).number("eps", 1e-12F).axes("axes", -1).node("ReduceL2", {"x", "axes"}, {"norm"});
  l2.node("Clip", {"norm", "eps"}, {"least"}).node("Shape", {"x"}, {"shape"}).node("Expand", {"least", "shape"}, {"e"});
  l2.node("Div", {"x", "e"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(l2.imported()), Texts{"L2Normalization"});
}

TEST(OnnxImport, ReadsActivationsInAnyOrder) {
  Model gelu;  // x / 2 + x / 2 erf(x / sqrt(2)), with a root that the model computes
  gelu.input("x", {"4", "8"}).number("half", 0.5F).number("two", 2).node("Sqrt", {"two"}, {"root"});
  gelu.node("Div", {"x", "root"}, {"d"}).node("Erf", {"d"}, {"e"}).node("Mul", {"half", "x"}, {"h"});
  gelu.node("Mul", {"e", "h"}, {"m"}).node("Add", {"h", "m"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(gelu.imported()), Texts{"GELU"});

  Model silu;  // x / (1 + exp(-x))
  silu.input("x", {"4", "8"}).number("one", 1).node("Neg", {"x"}, {"n"}).node("Exp", {"n"}, {"e"});
  silu.node("Add", {"e", "one"}, {"d"}).node("Div", {"x", "d"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(silu.imported()), Texts{"SiLU"});

  Model relu;
  relu.input("x", {"4", "8"}).number("zero", 0).axes("axes", 0).node("Clip", {"x", "zero"}, {"c"});
  relu.node("Unsqueeze", {"c", "axes"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(relu.imported()), (Texts{"ReLU", "Reshape"}));

  Model relu6;
  relu6.input("x", {"4", "8"}).number("zero", 0).number("six", 6).node("Clip", {"x", "zero", "six"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(relu6.imported()), Texts{"Formula"});
}

// y = a sigmoid(b) of a layer's columns [a, b]: GLU activates the first half, so that the halves of rows are swapped.
TEST(OnnxImport, SwapsTheHalvesOfALayerWhoseSecondHalfIsActivated) {
  Model model;
  model.input("x", {"4", "8"}).weight("one", {2, 8}, 1.0F).weight("three", {2, 8}, 3.0F);
  model.node("Concat", {"one", "three"}, {"w"}, {{"axis", 0}}).node("Gemm", {"x", "w"}, {"h"}, {{"transB", 1}});
  model.node("Split", {"h"}, {"a", "b"}, {{"axis", -1}, {"num_outputs", 2}}).node("Sigmoid", {"b"}, {"s"});
  model.node("Mul", {"a", "s"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(model.imported()), (Texts{"Linear", "GLU"}));
  std::vector<double> expected(16, 3.0);
  expected.resize(32, 1.0);
  EXPECT_EQ(weightsOf(model).at("h.weight"), expected);
}

// ---- weights that a model computes

TEST(OnnxImport, ComputesWeightsFromConstants) {
  Model model;  // w + 2 a b: 0.5 + 2 (0.5 0.25 + 0.5 0.25)
  model.input("x", {"4", "8"}).weight("w", {8, 3}).weight("a", {8, 2}).weight("b", {2, 3}, 0.25F).number("two", 2);
  model.node("MatMul", {"a", "b"}, {"ab"}).node("Mul", {"ab", "two"}, {"scaled"}).node("Add", {"w", "scaled"}, {"sum"});
  model.node("MatMul", {"x", "sum"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(model.imported()), Texts{"Linear"});
  EXPECT_EQ(weightsOf(model).at("y.weight"), std::vector<double>(24, 1.0));
}

// Two elements of four bits in a byte, the first one in the lower half; one scale for two rows.
TEST(OnnxImport, ReadsWeightsOfFourBitsInBlocks) {
  constexpr int kInt4 = 22;
  Model model;
  model.input("x", {"4", "4"}).codes("w", kInt4, {4, 1}, {0x71, 0xF8}).weight("scale", {2, 1}, 0.5F);
  model.node("DequantizeLinear", {"w", "scale"}, {"d"}, {{"axis", 0}, {"block_size", 2}});
  model.node("MatMul", {"x", "d"}, {"y"}).output("y");
  EXPECT_EQ(weightsOf(model).at("y.weight"), (std::vector<double>{0.5, 3.5, -4.0, -0.5}));
}

// (q W) (scale of q) (scale of W), as onnxruntime's quantize_dynamic writes it.
TEST(OnnxImport, ReadsLayersOfDynamicQuantization) {
  Model model;
  model.input("x", {"4", "2"}).codes("w", 3, {2, 1}, {3, -4}).weight("scale", {1}, 0.5F).codes("zero", 3, {}, {1});
  model.node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.node("MatMulInteger", {"q", "w", "z", "zero"}, {"sum"}).node("Cast", {"sum"}, {"wide"}, {{"to", 1}});
  model.node("Mul", {"s", "scale"}, {"factor"}).node("Mul", {"wide", "factor"}, {"y"}).output("y");
  const Result<ImportedPipeline> imported = model.imported();
  EXPECT_EQ(operationsOf(imported), Texts{"Linear"});
  EXPECT_TRUE(has(imported->notes.front(), "x and the weight are quantized in the model")) << imported->notes.front();
  EXPECT_EQ(weightsOf(model).at("y.weight"), (std::vector<double>{1.0, -2.5}));
}

// Rows of blocks, the first element in the lower half of a byte; without zero points 8 is 0.
TEST(OnnxImport, UnpacksWeightsOfOnnxRuntime) {
  Model model;
  model.input("x", {"4", "4"}).codes("w", 2, {1, 2, 1}, {0x98, 0x7F}).weight("scale", {2}, 0.5F).weight("bias", {1});
  model.node("MatMulNBits", {"x", "w", "scale", "", "", "bias"}, {"y"},
             {{"K", 4}, {"N", 1}, {"bits", 4}, {"block_size", 2}});
  model.domain("com.microsoft").output("y");
  EXPECT_EQ(operationsOf(model.imported()), Texts{"Linear"});
  EXPECT_EQ(weightsOf(model).at("y.weight"), (std::vector<double>{0.0, 0.5, 3.5, -0.5}));
}

TEST(OnnxImport, TakesALayerWithItsWeightOnTheLeft) {
  Model model;
  model.input("x", {"4", "8"}).weight("w", {3, 8}).node("Transpose", {"x"}, {"xt"});
  model.node("MatMul", {"w", "xt"}, {"yt"}).node("Transpose", {"yt"}, {"y"}).output("y");
  EXPECT_EQ(operationsOf(model.imported()), Texts{"Linear"});
}

TEST(OnnxImport, FillsSparseWeights) {
  Model dense;
  dense.input("x", {"4", "3"}).weight("w", {2}).node("MatMul", {"x", "w"}, {"y"}).output("y");
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(dense.bytes()));
  auto& sparse = *model.mutable_graph()->add_sparse_initializer();
  sparse.mutable_values()->Swap(model.mutable_graph()->mutable_initializer(0));
  model.mutable_graph()->clear_initializer();
  for (const std::int64_t extent : {3, 2}) sparse.add_dims(extent);
  sparse.mutable_indices()->set_data_type(::onnx::TensorProto::INT64);
  sparse.mutable_indices()->add_dims(2);
  for (const std::int64_t place : {1, 4}) sparse.mutable_indices()->add_int64_data(place);
  OnnxImportOptions options;
  options.takesWeights = true;
  const Result<ImportedPipeline> imported = importOnnxModel(model.SerializeAsString(), "sparse.onnx", options);
  ASSERT_TRUE(imported.hasValue()) << imported.error().message;
  ASSERT_EQ(imported->weights.size(), 1U);
  EXPECT_EQ(imported->weights[0].second.toDoubles(), (std::vector<double>{0.0, 0.0, 0.5, 0.5, 0.0, 0.0}));
}

TEST(OnnxImport, ReadsLosses) {
  for (const bool isInPieces : {false, true}) {
    Model model;
    model.input("x", {"4", "8"}).input("labels", {"4"}, ::onnx::TensorProto::INT64).weight("w", {8, 3});
    model.node("MatMul", {"x", "w"}, {"h"});
    if (isInPieces) model.node("LogSoftmax", {"h"}, {"p"}, {{"axis", 1}});
    model.node(isInPieces ? "NegativeLogLikelihoodLoss" : "SoftmaxCrossEntropyLoss", {isInPieces ? "p" : "h", "labels"},
               {"y"});
    const Result<ImportedPipeline> imported = model.output("y").imported();
    EXPECT_EQ(operationsOf(imported), (Texts{"Linear", "CrossEntropy"}));
    EXPECT_EQ(toJson(imported->document)["pipeline"]["inputs"][1]["dtype"], "i64");
  }
}

TEST(OnnxImport, AnOutputThatIsAnInputIsAnIdentity) {
  Model model;
  model.input("x", {"4", "8"}).weight("w", {8, 3}).node("MatMul", {"x", "w"}, {"y"}).node("Identity", {"x"}, {"same"});
  const Result<ImportedPipeline> imported = model.output("y").output("same").imported();
  EXPECT_EQ(operationsOf(imported), (Texts{"Linear", "Identity"}));
  EXPECT_EQ(imported->document.outputs().back().from, (Endpoint{imported->document.ops().back().id, "y"}));
}

/// PyTorch moves the classes of [B, S, V] to the second axis.
TEST(OnnxImport, ReadsLossesOfThreeAxes) {
  for (const int softmax : {0, 1, 2}) {
    Model model;
    model.input("x", {"2", "4", "8"}).input("labels", {"2", "4"}, ::onnx::TensorProto::INT64).weight("w", {8, 3});
    model.node("MatMul", {"x", "w"}, {"h"});
    if (softmax == 1) model.node("LogSoftmax", {"h"}, {"p"}, {{"axis", -1}});
    model.node("Transpose", {softmax == 1 ? "p" : "h"}, {"moved"}).order({0, 2, 1});
    if (softmax == 2) model.node("LogSoftmax", {"moved"}, {"p"}, {{"axis", 1}});
    model.node(softmax == 0 ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss",
               {softmax == 2 ? "p" : "moved", "labels"}, {"y"});
    EXPECT_EQ(operationsOf(model.output("y").imported()), (Texts{"Linear", "CrossEntropy"})) << softmax;
  }
}

/// Before opset 13 a softmax joins the axes from its own on.
TEST(OnnxImport, LeavesASoftmaxThatJoinsAxesApart) {
  const auto imported = [](std::int64_t opset, bool isInPieces) {
    Model model;
    model.opset(opset).input("x", {"2", "4", "8"}).input("labels", {"2", "4"}, ::onnx::TensorProto::INT64);
    model.weight("w", {8, 3}).node("MatMul", {"x", "w"}, {"h"}).node("Transpose", {"h"}, {"moved"}).order({0, 2, 1});
    if (isInPieces)
      model.node("LogSoftmax", {"moved"}, {"p"}, {{"axis", 1}})
          .node("NegativeLogLikelihoodLoss", {"p", "labels"}, {"y"});
    else
      model.node("SoftmaxCrossEntropyLoss", {"moved", "labels"}, {"y", "p"});
    return operationsOf(model.output("y").output("p").cut());
  };
  for (const bool isInPieces : {false, true}) {
    EXPECT_EQ(std::ranges::count(imported(12, isInPieces), std::string("CrossEntropy")), 0) << isInPieces;
    EXPECT_EQ(std::ranges::count(imported(13, false), std::string("CrossEntropy")), 1);
  }
}

TEST(OnnxImport, ReadsALossWhoseProbabilitiesAreAnOutput) {
  Model model;
  model.input("x", {"4", "8"}).input("labels", {"4"}, ::onnx::TensorProto::INT64).weight("w", {8, 3});
  model.node("MatMul", {"x", "w"}, {"h"}).node("SoftmaxCrossEntropyLoss", {"h", "labels"}, {"y", "log_prob"});
  const Result<ImportedPipeline> imported = model.output("y").output("log_prob").cut();
  EXPECT_EQ(operationsOf(imported), (Texts{"Linear", "CrossEntropy"}));
  ASSERT_TRUE(imported);
  EXPECT_NE(imported->notes.front().find("LogSoftmax"), std::string::npos) << imported->notes.front();
}

TEST(OnnxImport, ReadsASumWithANormWhoseStatisticsNobodyReads) {
  Model model;
  model.input("x", {"4", "8"}).input("skip", {"4", "8"}).weight("g", {8}).weight("b", {8});
  model.node("SkipLayerNormalization", {"x", "skip", "g", "b"}, {"y", "mean", "inverse"}).domain("com.microsoft");
  const Result<ImportedPipeline> imported = model.output("y").imported();
  EXPECT_EQ(operationsOf(imported), (Texts{"AddExtraInput", "LayerNorm"}));
  EXPECT_EQ(imported->document.ops()[1].attributes["eps"], 1e-12) << "onnxruntime's default";
}

// Over tokens and channels together.
TEST(OnnxImport, ANormOfSeveralAxesIsNoNormOfRows) {
  for (const char* const norm : {"ReduceMean", "ReduceSum"}) {
    Model model;
    model.input("x", {"B", "S", "8"}).weight("w", {8, 8}).number("eps", 1e-5F);
    model.integers("axes", {1, 2});
    model.node("Mul", {"x", "x"}, {"squares"}).node(norm, {"squares", "axes"}, {"mean"});
    model.node("Add", {"mean", "eps"}, {"sum"}).node("Sqrt", {"sum"}, {"root"}).node("Div", {"x", "root"}, {"n"});
    const Texts found = operationsOf(model.node("MatMul", {"n", "w"}, {"y"}).output("y").cut());
    EXPECT_EQ(std::ranges::count(found, std::string("RMSNorm")), 0) << norm;
    EXPECT_EQ(std::ranges::count(found, std::string("L2Normalization")), 0) << norm;
  }
}

TEST(OnnxImport, MultipliesByTheMatrixOfAnEinsum) {
  for (const char* const equation : {"bsi,io->bso", "bsi,oi->bso", "...i,io->...o", "asi, iz"}) {
    Model model;
    const bool isTurned = std::string_view(equation).find("oi") != std::string_view::npos;
    model.input("x", {"2", "4", "8"}).weight("w", isTurned ? Shape{3, 8} : Shape{8, 3});
    model.node("Einsum", {"x", "w"}, {"y"}).text("equation", equation);
    EXPECT_EQ(operationsOf(model.output("y").imported()), Texts{"Linear"}) << equation;
  }
}

// A pair with two scales multiplies by their ratio.
TEST(OnnxImport, KeepsCodesThatAreReadWithAnotherScale) {
  for (const bool isSame : {true, false}) {
    Model model;
    model.input("x", {"4", "8"}).weight("w", {8, 3}).number("a", 0.5F).number("b", isSame ? 0.5F : 0.25F);
    model.codes("zero", 3, {}, {0}).node("QuantizeLinear", {"x", "a", "zero"}, {"q"});
    model.node("DequantizeLinear", {"q", "b", "zero"}, {"d"}).node("MatMul", {"d", "w"}, {"y"});
    const Texts found = operationsOf(model.output("y").cut());
    EXPECT_EQ(found, isSame ? Texts{"Linear"} : (Texts{"External", "Linear"}));
  }
}

// Queries of one head, moved before their tokens and then normalized, as Gemma 3 has them.
TEST(OnnxImport, MovesNormsBeforeTransposes) {
  Model model;
  model.input("x", {"B", "S", "8"}).weight("w", {8, 8}).weight("gamma", {4}).number("eps", 1e-6F).weight("out", {4, 4});
  model.axes("last", -1)
      .integers("heads", {0, 0, 2, 4})
      .node("MatMul", {"x", "w"}, {"q"})
      .node("Reshape", {"q", "heads"}, {"h"});
  model.node("Transpose", {"h"}, {"t"}).order({0, 2, 1, 3}).node("Mul", {"t", "t"}, {"squares"});
  model.node("ReduceMean", {"squares", "last"}, {"mean"}).node("Add", {"mean", "eps"}, {"sum"});
  model.node("Sqrt", {"sum"}, {"root"}).node("Div", {"t", "root"}, {"n"}).node("Mul", {"n", "gamma"}, {"scaled"});
  model.node("Transpose", {"scaled"}, {"back"}).order({0, 2, 1, 3}).node("MatMul", {"back", "out"}, {"y"});
  EXPECT_EQ(operationsOf(model.output("y").imported()), (Texts{"Linear", "Reshape", "RMSNorm", "Linear"}));
}

TEST(OnnxImport, MutatedModelsGiveAPipelineOrASentence) {
  Model gate;
  gate.input("x", {"4", "8"}).node("Split", {"x"}, {"a", "b"}, {{"axis", -1}, {"num_outputs", 2}});
  gate.node("Sigmoid", {"a"}, {"s"}).node("Mul", {"s", "b"}, {"y"}).output("y");
  const std::vector<std::string> seeds = {mlpWithResidual().bytes(), decomposedRmsNorm(-1).bytes(), gate.bytes(),
                                          layersAroundSoftmax().bytes()};
  EXPECT_TRUE(rc::check([&] {
    const Result<ImportedPipeline> imported = importOnnxModel(mutated(*rc::gen::elementOf(seeds)), "sample.onnx");
    if (imported)
      RC_ASSERT(!hasErrors(lower(imported->document, {.pass = ExecutionMode::Inference}).diagnostics));
    else
      RC_ASSERT(!imported.error().message.empty() && isUtf8(imported.error().message));
  }));
}

}  // namespace
}  // namespace fuseline::testing
