// Preparation of a graph before import looks for ops: extents, functions, branches, slices, order, shapes.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_preparation.h"
#include "core/export/onnx/onnx_extent.h"
#include "core/export/onnx/onnx_functions.h"
#include "core/export/onnx/onnx_node_order.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline::testing {
namespace {

using Strings = std::vector<std::string>;
using OnnxNodes = ::onnx::GraphProto;
using OnnxFile = ::onnx::ModelProto;

constexpr std::int32_t kFloat = ::onnx::TensorProto::FLOAT, kInt8 = ::onnx::TensorProto::INT8;

// ---- models

::onnx::NodeProto& appendNode(OnnxNodes& graph, const std::string& type, const Strings& inputs,
                              const Strings& outputs) {
  ::onnx::NodeProto& node = *graph.add_node();
  const std::size_t dot = type.rfind('.');
  if (dot != std::string::npos) node.set_domain(type.substr(0, dot));
  node.set_op_type(dot == std::string::npos ? type : type.substr(dot + 1));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

::onnx::AttributeProto& appendAttribute(::onnx::NodeProto& node, const char* name) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  return attribute;
}

void setInteger(::onnx::NodeProto& node, const char* name, std::int64_t value) {
  ::onnx::AttributeProto& attribute = appendAttribute(node, name);
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(value);
}

/// Extents are numbers, or names.
void declareInput(OnnxNodes& graph, const std::string& name, std::int32_t type, const Strings& extents) {
  ::onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name(name);
  input.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::string& extent : extents)
    if (extent.find_first_not_of("0123456789") == std::string::npos)
      shape.add_dim()->set_dim_value(std::stoll(extent));
    else
      shape.add_dim()->set_dim_param(extent);
}

void addIntegers(OnnxNodes& graph, const std::string& name, const std::vector<std::int64_t>& values) {
  ::onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor.add_int64_data(value);
}

void addFlag(OnnxNodes& graph, const std::string& name, bool value) {
  ::onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::BOOL);
  tensor.add_int32_data(value ? 1 : 0);
}

OnnxFile modelWithOpset(std::int64_t opset = 18) {
  OnnxFile model;
  model.add_opset_import()->set_version(opset);
  return model;
}

Strings typesOfNodes(const OnnxNodes& graph) {
  Strings types;
  for (const auto& node : graph.node()) types.push_back(node.op_type());
  return types;
}

/// "f[B, 8]" with f, i8 or the number of the element type.
std::string declaredType(const OnnxNodes& graph, const std::string& tensor) {
  for (const auto* const values : {&graph.value_info(), &graph.input(), &graph.output()})
    for (const auto& value : *values)
      if (value.name() == tensor && value.type().has_tensor_type() && value.type().tensor_type().has_shape()) {
        Strings extents;
        for (const auto& extent : value.type().tensor_type().shape().dim())
          extents.push_back(extent.has_dim_param() ? extent.dim_param() : std::to_string(extent.dim_value()));
        const std::int32_t type = value.type().tensor_type().elem_type();
        const std::string name = type == kFloat ? "f" : type == kInt8 ? "i8" : std::to_string(type);
        return fmt::format("{}[{}]", name, fmt::join(extents, ", "));
      }
  return "unknown";
}

// ---- extents

OnnxExtent b() { return OnnxExtent::symbol("B"); }
OnnxExtent s() { return OnnxExtent::symbol("S"); }

TEST(OnnxExtent, IsWrittenAsAPolynomial) {
  EXPECT_EQ((b() * s() * OnnxExtent(2) + OnnxExtent(1)).text(), "2*B*S + 1");
  EXPECT_EQ((b() - b()).text(), "0");
  EXPECT_EQ((b() + OnnxExtent(3)).number(), std::nullopt);
  EXPECT_EQ((b() - b() + OnnxExtent(3)).number(), 3);
}

TEST(OnnxExtent, IsDividedOnlyWithoutARemainder) {
  const OnnxExtent whole = OnnxExtent(2) * b() * s() + OnnxExtent(2) * b();
  EXPECT_EQ(whole.dividedBy(OnnxExtent(2) * b())->text(), "S + 1");
  EXPECT_FALSE((whole + OnnxExtent(1)).dividedBy(b()));
  EXPECT_FALSE(whole.dividedBy(OnnxExtent(0)));
}

TEST(OnnxExtent, HasASignWhereAllSymbolsFromOneOnAgree) {
  EXPECT_EQ((b() + s()).sign(), 1);
  EXPECT_EQ((b() - OnnxExtent(1)).sign(), std::nullopt);  // 0 for B = 1, else positive
  EXPECT_EQ((OnnxExtent(0) - b()).sign(), -1);
  EXPECT_EQ((b() - b()).sign(), 0);
}

TEST(OnnxExtent, IsUnknownWhere64BitsDoNotHoldIt) {
  const OnnxExtent largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE((largest + OnnxExtent(1)).isUnknown());
  EXPECT_TRUE((largest * b() * OnnxExtent(2)).isUnknown());
  EXPECT_TRUE((OnnxExtent::unknown() - OnnxExtent::unknown()).isUnknown());
  EXPECT_FALSE(OnnxExtent::unknown() == OnnxExtent::unknown());
}

OnnxExtent drawnExtent() {
  OnnxExtent sum = *rc::gen::inRange<std::int64_t>(-9, 10);
  for (const OnnxExtent& term : {b(), s(), b() * s(), b() * b()})
    sum = sum + term * OnnxExtent(*rc::gen::inRange<std::int64_t>(-9, 10));
  return sum;
}

RC_GTEST_PROP(OnnxExtent, CalculatesLikeARing, ()) {
  const OnnxExtent x = drawnExtent(), y = drawnExtent(), z = drawnExtent();
  RC_ASSERT(x * (y + z) == x * y + x * z);
  RC_ASSERT(x + y - y == x);
  RC_ASSERT(x * y == y * x);
  if (!y.is(0)) RC_ASSERT((x * y).dividedBy(y).value() == x);
}

// ---- functions

::onnx::FunctionProto& addFunction(OnnxFile& model, const std::string& name, const std::string& body) {
  ::onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("mine");
  function.set_name(name);
  function.add_input("x");
  function.add_output("y");
  OnnxNodes nodes;
  appendNode(nodes, body, {"x"}, {"t"});
  appendNode(nodes, "Add", {"t", "x"}, {"y"});
  *function.mutable_node() = nodes.node();
  return function;
}

TEST(OnnxFunctions, AreWrittenOutAlsoWithinFunctions) {
  OnnxFile model = modelWithOpset();
  addFunction(model, "Inner", "Relu");
  addFunction(model, "Outer", "mine.Inner");
  appendNode(*model.mutable_graph(), "mine.Outer", {"a"}, {"b"});
  appendNode(*model.mutable_graph(), "mine.Outer", {"b"}, {"c"});
  inlineFunctions(model);
  EXPECT_EQ(typesOfNodes(model.graph()), (Strings{"Relu", "Add", "Add", "Relu", "Add", "Add"}));
  EXPECT_EQ(model.graph().node(0).input(0), "a");
  EXPECT_EQ(model.graph().node(5).output(0), "c");
  Strings made;
  for (const auto& node : model.graph().node()) made.push_back(node.output(0));
  std::ranges::sort(made);
  EXPECT_EQ(std::ranges::adjacent_find(made), made.end());
}

TEST(OnnxFunctions, ThatCallThemselvesStay) {
  OnnxFile model = modelWithOpset();
  addFunction(model, "Endless", "mine.Endless");
  appendNode(*model.mutable_graph(), "mine.Endless", {"a"}, {"b"});
  inlineFunctions(model);
  EXPECT_TRUE(std::ranges::count(typesOfNodes(model.graph()), std::string("Endless")) > 0);
}

// ---- branches

/// y = If(condition): x, or Relu(Relu(x)).
OnnxFile modelWithIf() {
  OnnxFile model = modelWithOpset();
  OnnxNodes& graph = *model.mutable_graph();
  declareInput(graph, "x", kFloat, {"4", "8"});
  ::onnx::NodeProto& node = appendNode(graph, "If", {"condition"}, {"y"});
  OnnxNodes& yes = *appendAttribute(node, "then_branch").mutable_g();
  appendNode(yes, "Identity", {"x"}, {"as_it_is"});
  yes.add_output()->set_name("as_it_is");
  OnnxNodes& no = *appendAttribute(node, "else_branch").mutable_g();
  appendNode(no, "Relu", {"x"}, {"once"});
  appendNode(no, "Relu", {"once"}, {"twice"});
  no.add_output()->set_name("twice");
  graph.add_output()->set_name("y");
  return model;
}

TEST(OnnxBranches, AreTakenByAConstant) {
  for (const bool condition : {true, false}) {
    OnnxFile model = modelWithIf();
    addFlag(*model.mutable_graph(), "condition", condition);
    OnnxPreparation prepared(model);
    prepared.prepare();
    EXPECT_EQ(std::ranges::count(typesOfNodes(prepared.graph()), std::string("Relu")), condition ? 0 : 2);
    EXPECT_EQ(std::ranges::count(typesOfNodes(prepared.graph()), std::string("If")), 0);
    EXPECT_TRUE(prepared.guessedBranches().empty());
  }
}

TEST(OnnxBranches, AreGuessedWhereOnlyARunKnowsThem) {
  OnnxFile model = modelWithIf();
  declareInput(*model.mutable_graph(), "condition", ::onnx::TensorProto::BOOL, {});
  OnnxPreparation prepared(model);
  prepared.prepare();
  EXPECT_EQ(std::ranges::count(typesOfNodes(prepared.graph()), std::string("Relu")), 2);
  EXPECT_EQ(prepared.guessedBranches(), Strings{"y"});
}

TEST(OnnxBranches, AreTakenByWhatIsKnownOfShapes) {
  OnnxFile model = modelWithIf();
  OnnxNodes& graph = *model.mutable_graph();
  addIntegers(graph, "eight", {8});
  addIntegers(graph, "one", {1});
  appendNode(graph, "Shape", {"x"}, {"shape"});
  appendNode(graph, "Gather", {"shape", "one"}, {"columns"});
  appendNode(graph, "Equal", {"columns", "eight"}, {"condition"});
  OnnxPreparation prepared(model);
  prepared.prepare();
  EXPECT_EQ(std::ranges::count(typesOfNodes(prepared.graph()), std::string("Relu")), 0);
}

// ---- extents of their own

/// min(S, 64) of the columns of x: no polynomial of S.
std::int64_t columnsOfSlice(std::int64_t S) {
  OnnxFile model = modelWithOpset();
  OnnxNodes& graph = *model.mutable_graph();
  declareInput(graph, "x", kFloat, {"B", "S"});
  addIntegers(graph, "zero", {0});
  addIntegers(graph, "one", {1});
  addIntegers(graph, "most", {64});
  appendNode(graph, "Shape", {"x"}, {"shape"});
  appendNode(graph, "Gather", {"shape", "one"}, {"columns"});
  appendNode(graph, "Min", {"columns", "most"}, {"end"});
  appendNode(graph, "Slice", {"x", "zero", "end", "one"}, {"y"});
  OnnxPreparation prepared(model, {{"S", S}});
  prepared.prepare();
  for (const auto& value : prepared.graph().value_info())
    if (value.name() == "y") return prepared.symbols().at(value.type().tensor_type().shape().dim(1).dim_param());
  return 0;
}

TEST(OnnxPreparation, ComputesDefaultsThatFollowFromThoseOfInputs) {
  EXPECT_EQ(columnsOfSlice(6), 6);
  EXPECT_EQ(columnsOfSlice(100), 64);
}

// ---- slices

struct Part {
  std::int64_t from, to;
};

Strings typesAfterSlices(const std::vector<Part>& parts) {
  OnnxFile model = modelWithOpset();
  OnnxNodes& graph = *model.mutable_graph();
  declareInput(graph, "x", kFloat, {"B", "8"});
  addIntegers(graph, "axis", {-1});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    addIntegers(graph, fmt::format("from{}", i), {parts[i].from});
    addIntegers(graph, fmt::format("to{}", i), {parts[i].to});
    appendNode(graph, "Slice", {"x", fmt::format("from{}", i), fmt::format("to{}", i), "axis"},
               {fmt::format("y{}", i)});
    graph.add_output()->set_name(fmt::format("y{}", i));
  }
  OnnxPreparation prepared(model);
  prepared.prepare();
  return typesOfNodes(prepared.graph());
}

TEST(OnnxSlices, ThatAreAllEqualPartsAreASplit) {
  EXPECT_EQ(typesAfterSlices({{0, 4}, {4, 8}}), Strings{"Split"});
  EXPECT_EQ(typesAfterSlices({{4, std::numeric_limits<std::int64_t>::max()}, {0, 4}}), Strings{"Split"});
  EXPECT_EQ(typesAfterSlices({{0, 2}, {2, 4}, {4, 6}, {-2, 8}}), Strings{"Split"});
}

TEST(OnnxSlices, ThatLeaveSomethingOutOrOverlapStay) {
  const Strings both = {"Slice", "Slice"};
  EXPECT_EQ(typesAfterSlices({{0, 4}, {4, 6}}), both);
  EXPECT_EQ(typesAfterSlices({{0, 5}, {5, 8}}), both);
  EXPECT_EQ(typesAfterSlices({{0, 4}, {0, 4}}), both);
  EXPECT_EQ(typesAfterSlices({{0, 8}}), Strings{"Slice"});
}

// ---- order

TEST(OnnxNodeOrder, RunsWhatOthersReadFirst) {
  OnnxNodes graph;
  appendNode(graph, "C", {"a", "b"}, {"c"});
  appendNode(graph, "B", {"a"}, {"b"});
  appendNode(graph, "D", {}, {"d"});
  appendNode(graph, "A", {"x"}, {"a"});
  sortNodes(graph);
  EXPECT_EQ(typesOfNodes(graph), (Strings{"D", "A", "B", "C"}));
  const std::string sorted = graph.SerializeAsString();
  sortNodes(graph);
  EXPECT_EQ(graph.SerializeAsString(), sorted);
}

TEST(OnnxNodeOrder, SeesWhatBranchesRead) {
  OnnxNodes graph;
  ::onnx::NodeProto& node = appendNode(graph, "If", {"condition"}, {"y"});
  appendNode(*appendAttribute(node, "then_branch").mutable_g(), "Identity", {"a"}, {"inner"});
  appendNode(graph, "A", {"x"}, {"a"});
  sortNodes(graph);
  EXPECT_EQ(typesOfNodes(graph), (Strings{"A", "If"}));
}

TEST(OnnxNodeOrder, KeepsRingsBehindAllOthers) {
  OnnxNodes graph;
  appendNode(graph, "Ring", {"b"}, {"a"});
  appendNode(graph, "Ring", {"a"}, {"b"});
  appendNode(graph, "AfterRing", {"b"}, {"c"});
  appendNode(graph, "Free", {"x"}, {"d"});
  sortNodes(graph);
  EXPECT_EQ(typesOfNodes(graph), (Strings{"Free", "Ring", "Ring", "AfterRing"}));
}

// ---- shapes of single nodes; the values follow the operators' specifications

struct ShapeCase {
  const char* type;
  std::vector<Strings> inputs;  // extents; none: an input that is left out
  std::vector<std::pair<const char*, std::int64_t>> attributes;
  const char* shape;
  std::int32_t elements = kFloat;
};

const ShapeCase kShapes[] = {
    {"MatMul", {{"2", "4", "8"}, {"8", "3"}}, {}, "f[2, 4, 3]"},
    {"GridSample", {{"2", "3", "5", "5"}, {"2", "7", "9", "2"}}, {}, "f[2, 3, 7, 9]"},
    {"SoftmaxCrossEntropyLoss", {{"2", "5", "6"}, {"2", "6"}}, {}, "f[]"},
    {"com.microsoft.nchwc.ReorderOutput", {{"2", "16", "5", "7"}}, {{"channels", 10}}, "f[2, 10, 5, 7]"},
    {"com.microsoft.nchwc.ReorderOutput",
     {{"2", "16", "5", "7"}},
     {{"channels", 10}, {"channels_last", 1}},
     "f[2, 5, 7, 10]"},
    {"com.microsoft.QLinearAdd",
     {{"2", "4", "8"}, {"1"}, {"1"}, {"8"}, {"1"}, {"1"}, {"1"}, {"1"}},
     {},
     "i8[2, 4, 8]",
     kInt8},
    {"com.microsoft.QGemm",
     {{"4", "8"}, {"1"}, {"1"}, {"3", "8"}, {"1"}, {"1"}, {"3"}, {"1"}, {"1"}},
     {{"transB", 1}},
     "i8[4, 3]",
     kInt8},
    {"com.microsoft.QGemm", {{"4", "8"}, {"1"}, {"1"}, {"8", "3"}, {"1"}, {"1"}}, {}, "f[4, 3]", kInt8},
    {"com.microsoft.QLinearConcat",
     {{"1"}, {"1"}, {"2", "3"}, {"1"}, {"1"}, {"2", "5"}, {"1"}, {"1"}},
     {{"axis", 1}},
     "i8[2, 8]",
     kInt8},
    {"com.microsoft.QLinearGlobalAveragePool",
     {{"2", "3", "5", "7"}, {"1"}, {"1"}, {"1"}, {"1"}},
     {},
     "i8[2, 3, 1, 1]",
     kInt8},
    {"com.microsoft.QLinearGlobalAveragePool",
     {{"2", "5", "7", "3"}, {"1"}, {"1"}, {"1"}, {"1"}},
     {{"channels_last", 1}},
     "i8[2, 1, 1, 3]",
     kInt8},
    {"MatMulInteger", {{"4", "8"}, {"8", "3"}}, {}, "6[4, 3]", kInt8},
    {"com.microsoft.MatMulNBits", {{"2", "4", "8"}, {"3", "1", "16"}, {"3"}}, {{"N", 3}, {"K", 8}}, "f[2, 4, 3]"},
};

TEST(OnnxShapes, FollowTheSpecifications) {
  for (const ShapeCase& each : kShapes) {
    OnnxFile model = modelWithOpset();
    OnnxNodes& graph = *model.mutable_graph();
    Strings inputs;
    for (const Strings& extents : each.inputs) {
      inputs.push_back(fmt::format("x{}", inputs.size()));
      declareInput(graph, inputs.back(), each.elements, extents);
    }
    ::onnx::NodeProto& node = appendNode(graph, each.type, inputs, {"y"});
    for (const auto& [name, value] : each.attributes) setInteger(node, name, value);
    appendNode(graph, "Identity", {"y"}, {"z"});
    graph.add_output()->set_name("z");
    OnnxPreparation prepared(model);
    prepared.prepare({"M", "B", "S", "M2", "B2", "S2", "M3", "B3", "S3", "M4", "B4"});
    EXPECT_EQ(declaredType(prepared.graph(), "y"), each.shape) << each.type;
  }
}

}  // namespace
}  // namespace fuseline::testing
