// Attention of several exporters, as ops of Fuseline.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_import.h"
#include "core/export/onnx/onnx_proto.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

/// A graph of B = 2 sequences of 6 tokens, 4 heads of 8 channels. Shapes of all tensors follow from the inputs.
class AttentionGraph {
 public:
  explicit AttentionGraph(std::int64_t opset = 18) {
    m_model.set_ir_version(8);
    m_model.add_opset_import()->set_version(opset);
    auto& microsoft = *m_model.add_opset_import();
    microsoft.set_domain("com.microsoft");
    microsoft.set_version(1);
  }

  AttentionGraph& input(const std::string& name, const Integers& shape, int type = 1) {
    auto& info = *graph().add_input();
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    for (const std::int64_t extent : shape) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
    return *this;
  }

  AttentionGraph& floats(const std::string& name, const Integers& shape,
                         const std::function<double(std::int64_t)>& value) {
    auto& tensor = constant(name, shape, 1);
    for (std::int64_t i = 0; i < numElements(shape); ++i) tensor.add_float_data(static_cast<float>(value(i)));
    return *this;
  }
  AttentionGraph& number(const std::string& name, double value) {
    return floats(name, {}, [value](std::int64_t) { return value; });
  }
  AttentionGraph& integers(const std::string& name, const Integers& values) {
    auto& tensor = constant(name, {static_cast<std::int64_t>(values.size())}, 7);
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return *this;
  }

  /// text: of an attribute "name=2" or "name=0,2,1,3"; of a real number "name=0.5f".
  AttentionGraph& node(const std::string& type, const Names& inputs, const std::string& output,
                       const Names& attributes = {}, const std::string& domain = {}) {
    auto& node = *graph().add_node();
    node.set_op_type(type);
    node.set_domain(domain);
    node.set_name("/" + output);
    for (const std::string& name : inputs) node.add_input(name);
    node.add_output(output);
    for (const std::string& text : attributes) addAttribute(node, text);
    return *this;
  }

  /// Queries, keys and values of linear layers of x, as [B, S, heads, 8] and with heads in front.
  AttentionGraph& heads(const std::string& name, const std::string& x, std::int64_t heads) {
    floats(name + ".w", {32, 8 * heads}, [](std::int64_t i) { return 0.01 * static_cast<double>(i % 7); });
    node("MatMul", {x, name + ".w"}, name + "_projected").integers(name + ".shape", {m_batch, m_tokens, heads, 8});
    node("Reshape", {name + "_projected", name + ".shape"}, name + "_split");
    return node("Transpose", {name + "_split"}, name, {"perm=0,2,1,3"});
  }

  /// Any number of one of them: -1. x is the input.
  AttentionGraph& sizes(std::int64_t batch, std::int64_t tokens) {
    m_batch = batch;
    m_tokens = tokens;
    return input("x", {batch, tokens, 32});
  }
  /// The size of an axis of x as a real number.
  AttentionGraph& size(const std::string& name, std::int64_t axis) {
    node("Shape", {"x"}, name + ".shape").integers(name + ".axis", {axis});
    node("Gather", {name + ".shape", name + ".axis"}, name + ".integer");
    return node("Cast", {name + ".integer"}, name, {"to=1"});
  }
  AttentionGraph& with(const OnnxImportOptions& options) {
    m_options = options;
    return *this;
  }

  /// o: [B, heads, S, 8], behind which the heads are merged again for a last layer.
  Result<ImportedPipeline> merged(const std::string& o) {
    node("Transpose", {o}, "turned", {"perm=0,2,1,3"}).integers("flat", {m_batch, m_tokens, 32});
    node("Reshape", {"turned", "flat"}, "merged").floats("wo", {32, 32}, [](std::int64_t) { return 0.1; });
    node("MatMul", {"merged", "wo"}, "y");
    return imported("y");
  }

  Result<ImportedPipeline> imported(const std::string& output) {
    graph().add_output()->set_name(output);
    m_options.keepsFlat = m_options.takesWeights = true;
    return importOnnxModel(m_model.SerializeAsString(), "attention.onnx", m_options);
  }

 private:
  ::onnx::GraphProto& graph() { return *m_model.mutable_graph(); }

  ::onnx::TensorProto& constant(const std::string& name, const Integers& shape, int type) {
    auto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const std::int64_t extent : shape) tensor.add_dims(extent);
    return tensor;
  }

  static void addAttribute(::onnx::NodeProto& node, const std::string& text) {
    auto& attribute = *node.add_attribute();
    const std::size_t equals = text.find('=');
    attribute.set_name(text.substr(0, equals));
    std::string value = text.substr(equals + 1);
    if (value.ends_with('f')) {
      attribute.set_type(::onnx::AttributeProto::FLOAT);
      attribute.set_f(std::stof(value));
    } else if (value.find(',') == std::string::npos) {
      attribute.set_type(::onnx::AttributeProto::INT);
      attribute.set_i(std::stoll(value));
    } else {
      attribute.set_type(::onnx::AttributeProto::INTS);
      for (std::size_t begin = 0; begin < value.size();
           begin = value.find(',', begin) == std::string::npos ? value.size() : value.find(',', begin) + 1)
        attribute.add_ints(std::stoll(value.substr(begin)));
    }
  }

  ::onnx::ModelProto m_model;
  std::int64_t m_batch = 2, m_tokens = 6;
  OnnxImportOptions m_options;
};

Names operationsOf(const Result<ImportedPipeline>& imported) {
  if (!imported) return {imported.error().message};
  Names operations;
  for (const DocumentOp& op : imported->document.ops()) operations.push_back(op.operation);
  return operations;
}

using Values = std::map<std::string, Json>;

/// The first op of this kind; empty where there is none.
Values attributesOf(const Result<ImportedPipeline>& imported, std::string_view operation) {
  Values values;
  if (!imported) return values;
  for (const DocumentOp& op : imported->document.ops()) {
    if (op.operation != operation) continue;
    for (const auto& [name, value] : op.attributes.items()) values.emplace(name, value);
    break;
  }
  return values;
}

double masked(std::int64_t place, double fill) { return place % 6 > place / 6 % 6 ? fill : 0.0; }

const Names kLayers = {"Linear", "Linear", "Linear"};

Names with(Names first, const Names& next) {
  first.insert(first.end(), next.begin(), next.end());
  return first;
}

/// softmax(q k^T / sqrt(8) + mask) v.
AttentionGraph inPieces(std::int64_t groups, const std::string& mask) {
  AttentionGraph graph;
  graph.input("x", {2, 6, 32}).heads("q", "x", 4).heads("k", "x", groups).heads("v", "x", groups);
  graph.number("tau", 1.0 / std::sqrt(8.0));
  for (const std::string name : {"k", "v"}) {
    graph.integers(name + ".one", {2}).integers(name + ".many", {2, groups, 4 / groups, 6, 8});
    graph.integers(name + ".all", {2, 4, 6, 8}).node("Unsqueeze", {name, name + ".one"}, name + "5");
    graph.node("Expand", {name + "5", name + ".many"}, name + "_many");
    graph.node("Reshape", {name + "_many", name + ".all"}, name + "_all");
  }
  graph.node("Transpose", {"k_all"}, "kt", {"perm=0,1,3,2"}).node("MatMul", {"q", "kt"}, "s");
  graph.node("Mul", {"s", "tau"}, "scaled");
  if (!mask.empty()) graph.node("Add", {"scaled", mask}, "added");
  graph.node("Softmax", {mask.empty() ? "scaled" : "added"}, "p", {"axis=-1"}).node("MatMul", {"p", "v_all"}, "o");
  return graph;
}

TEST(OnnxAttention, ReadsAttentionInPieces) {
  const Result<ImportedPipeline> imported = inPieces(4, "").merged("o");
  EXPECT_EQ(operationsOf(imported), with(kLayers, {"DotProductAttention", "Linear"}));
  EXPECT_EQ(attributesOf(imported, "DotProductAttention"), (Values{{"attn_mask_type", "no_mask"},
                                                                   {"num_attention_heads", 4},
                                                                   {"kv_channels", Json{8}},
                                                                   {"qkv_format", "bshd"}}));
}

/// exp(s) / sum of exp(s), with or without the largest score of the row subtracted. of: what the sum adds.
AttentionGraph withSharesOf(bool subtractsLargest, const std::string& of) {
  AttentionGraph graph;
  graph.input("x", {2, 6, 32}).heads("q", "x", 4).heads("k", "x", 4).heads("v", "x", 4).integers("last", {-1});
  graph.node("Transpose", {"k"}, "kt", {"perm=0,1,3,2"}).node("MatMul", {"q", "kt"}, "s");
  graph.node("ReduceMax", {"s"}, "largest", {"axes=-1,", "keepdims=1"}).node("Sub", {"s", "largest"}, "below");
  graph.node("Exp", {subtractsLargest ? "below" : "s"}, "e").node("ReduceSum", {of, "last"}, "sum", {"keepdims=1"});
  graph.node("Div", {"e", "sum"}, "p").node("MatMul", {"p", "v"}, "o");
  return graph;
}

TEST(OnnxAttention, ReadsASoftmaxThatIsWrittenOut) {
  for (const bool subtractsLargest : {false, true})
    EXPECT_EQ(operationsOf(withSharesOf(subtractsLargest, "e").merged("o")),
              with(kLayers, {"DotProductAttention", "Linear"}))
        << subtractsLargest;
}

TEST(OnnxAttention, LeavesSharesOfAnotherSum) {
  const Names operations = operationsOf(withSharesOf(true, "s").merged("o"));
  EXPECT_EQ(std::ranges::count(operations, "DotProductAttention"), 0);
}

TEST(OnnxAttention, ReadsHeadsThatShareKeysUnderACausalMask) {
  for (const double fill : {-std::numeric_limits<double>::infinity(), -3.4028235e38, -65504.0, -1e4}) {
    AttentionGraph graph = inPieces(2, "mask");
    graph.floats("mask", {1, 1, 6, 6}, [fill](std::int64_t i) { return masked(i, fill); });
    const Result<ImportedPipeline> imported = graph.merged("o");
    Values attributes = attributesOf(imported, "DotProductAttention");
    EXPECT_EQ(attributes["attn_mask_type"], "causal") << fill;
    EXPECT_EQ(attributes["num_gqa_groups"], 2);
    EXPECT_EQ(imported->document.inputs().size(), 1U);
  }
}

TEST(OnnxAttention, ReadsAWindow) {
  AttentionGraph graph = inPieces(4, "mask");
  graph.floats("mask", {6, 6}, [](std::int64_t i) {
    const std::int64_t distance = i / 6 - i % 6;
    return distance < 0 || distance > 2 ? -INFINITY : 0.0;
  });
  Values attributes = attributesOf(graph.merged("o"), "DotProductAttention");
  EXPECT_EQ(attributes["attn_mask_type"], "causal");
  EXPECT_EQ(attributes["window_size"], (Json{2, 0})) << "the key itself and two before it";
}

// -100 is a number like any other, and so is what a row adds that masks every key by a number.
TEST(OnnxAttention, TakesWhatIsNoMaskForABias) {
  for (const bool isRow : {false, true}) {
    AttentionGraph graph = inPieces(4, "mask");
    graph.floats("mask", {1, 1, 6, 6},
                 [isRow](std::int64_t i) { return isRow ? (i < 6 ? -1e9 : 0.0) : masked(i, -100.0); });
    const Result<ImportedPipeline> imported = graph.merged("o");
    EXPECT_EQ(attributesOf(imported, "DotProductAttention")["core_attention_bias_type"], "post_scale_bias");
    ASSERT_EQ(imported->document.inputs().size(), 2U);
    const std::string name = imported->document.inputs()[1].id;
    const auto weight = std::ranges::find(imported->weights, name, &NamedTensors::value_type::first);
    ASSERT_NE(weight, imported->weights.end()) << "its values are among the weights";
    EXPECT_EQ(weight->second.spec.shape, (Shape{1, 1, 6, 6}));
    EXPECT_EQ(weight->second.toDoubles()[1], isRow ? -1e9 : -100.0);
  }
}

// softmax(q k^T * scale + bias) v of any number of tokens, or of any batch.
AttentionGraph ofAnySize(std::int64_t batch, std::int64_t tokens) {
  AttentionGraph graph;
  graph.sizes(batch, tokens).heads("q", "x", 4).heads("k", "x", 4).heads("v", "x", 4);
  graph.node("Transpose", {"k"}, "kt", {"perm=0,1,3,2"}).node("MatMul", {"q", "kt"}, "s");
  graph.node("Mul", {"s", "scale"}, "scaled").node("Add", {"scaled", "bias"}, "added");
  graph.node("Softmax", {"added"}, "p", {"axis=-1"}).node("MatMul", {"p", "v"}, "o");
  return graph;
}

// The distance of query and key, as relative position biases are made of it. Only its values for 3 tokens are known.
TEST(OnnxAttention, WritesABiasThatFollowsTheTokensAtTheGivenNumber) {
  AttentionGraph graph = ofAnySize(2, -1);
  graph.number("scale", 0.25).number("zero", 0.0).number("one", 1.0).integers("first", {0}).integers("second", {1});
  graph.size("count", 1).node("Squeeze", {"count"}, "tokens").node("Range", {"zero", "tokens", "one"}, "places");
  graph.node("Unsqueeze", {"places", "first"}, "keys").node("Unsqueeze", {"places", "second"}, "queries");
  graph.node("Sub", {"queries", "keys"}, "bias");
  const Result<ImportedPipeline> imported = graph.with({.extents = {{"N", 3}}}).merged("o");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->document.symbols()["N"], 3);
  ASSERT_EQ(imported->document.inputs().size(), 2U);
  const std::string name = imported->document.inputs()[1].id;
  const auto bias = std::ranges::find(imported->weights, name, &NamedTensors::value_type::first);
  ASSERT_NE(bias, imported->weights.end());
  EXPECT_EQ(bias->second.spec.shape, (Shape{1, 1, 3, 3}));
  EXPECT_EQ(bias->second.toDoubles(), (std::vector<double>{0, -1, -2, 1, 0, -1, 2, 1, 0}));
  EXPECT_TRUE(std::ranges::any_of(imported->notes, [](const std::string& note) {
    return note.find("only those of shape [1, 1, 3, 3]") != std::string::npos;
  })) << fmt::format("{}", fmt::join(imported->notes, "\n"));
}

TEST(OnnxAttention, RefusesExtentsOfNoOpenSymbol) {
  const auto withExtent = [](const std::string& name, std::int64_t value) {
    AttentionGraph graph = ofAnySize(2, -1).number("scale", 0.25).number("bias", 0.0);
    return graph.with({.extents = {{name, value}}}).merged("o").error().message;
  };
  EXPECT_EQ(withExtent("tokens", 3), "--set tokens=3: the model has no such symbol. It has: N.");
  EXPECT_EQ(withExtent("N", 0), "--set N=0: expected a positive number.");
  EXPECT_EQ(withExtent("B", 3), "--set B=3: the model fixes B to 2. Set it later: fuseline run FILE --set B=3.");
}

// At other extents the numbers would be others, and nothing in the pipeline says so.
TEST(OnnxAttention, LeavesNumbersThatFollowExtents) {
  AttentionGraph scaled = ofAnySize(2, -1).size("scale", 1).number("bias", 0.0);
  EXPECT_TRUE(attributesOf(scaled.merged("o"), "DotProductAttention").empty());
  AttentionGraph biased = ofAnySize(-1, 6).number("scale", 0.25).size("batch", 0);
  biased.floats("table", {6, 6}, [](std::int64_t i) { return static_cast<double>(i); });
  const Result<ImportedPipeline> imported = biased.node("Mul", {"table", "batch"}, "bias").merged("o");
  EXPECT_TRUE(attributesOf(imported, "DotProductAttention").empty());
}

// Padding of a batch, as BERT has it: [B, 1, 1, Sk].
TEST(OnnxAttention, TakesAMaskThatAnInputGivesAsAnInput) {
  for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{6}}) {
    AttentionGraph graph = inPieces(4, "mask");
    graph.input("mask", {2, 1, rows, 6});
    const Result<ImportedPipeline> imported = graph.merged("o");
    EXPECT_EQ(attributesOf(imported, "DotProductAttention")["core_attention_bias_type"], "post_scale_bias");
    EXPECT_EQ(attributesOf(imported, "DotProductAttention")["attn_mask_type"], "no_mask");
    EXPECT_EQ(imported->document.inputs().size(), 2U);
  }
}

TEST(OnnxAttention, ReadsTheOpOfOpset23) {
  AttentionGraph graph(23);
  graph.input("x", {2, 6, 32}).heads("q", "x", 4).heads("k", "x", 2).heads("v", "x", 2);
  graph.node("Attention", {"q", "k", "v"}, "o", {"is_causal=1", "scale=0.5f", "softcap=20.0f"});
  EXPECT_EQ(attributesOf(graph.merged("o"), "DotProductAttention"), (Values{{"attn_mask_type", "causal"},
                                                                            {"num_attention_heads", 4},
                                                                            {"num_gqa_groups", 2},
                                                                            {"kv_channels", Json{8}},
                                                                            {"softmax_scale", 0.5},
                                                                            {"softcap", 20.0},
                                                                            {"qkv_format", "bshd"}}));
}

TEST(OnnxAttention, ReadsMergedHeadsOfOnnxRuntime) {
  AttentionGraph graph;
  graph.input("q", {2, 6, 32}).input("k", {2, 5, 32}).input("v", {2, 5, 32});
  graph.node("MultiHeadAttention", {"q", "k", "v"}, "y", {"num_heads=4"}, "com.microsoft");
  EXPECT_EQ(operationsOf(graph.imported("y")), (Names{"DotProductAttention"}));
}

TEST(OnnxAttention, ReadsKeyMasksOfOnnxRuntime) {
  for (const Integers& shape : {Integers{2, 5}, Integers{2, 6, 5}, Integers{2}}) {
    AttentionGraph graph;
    graph.input("q", {2, 6, 32}).input("k", {2, 5, 32}).input("v", {2, 5, 32}).input("mask", shape, 6);
    graph.node("MultiHeadAttention", {"q", "k", "v", "", "mask"}, "y", {"num_heads=4"}, "com.microsoft");
    const Result<ImportedPipeline> imported = graph.imported("y");
    EXPECT_EQ(operationsOf(imported).back(), "DotProductAttention");
    EXPECT_EQ(attributesOf(imported, "DotProductAttention")["core_attention_bias_type"], "post_scale_bias");
  }
}

TEST(OnnxAttention, NamesAKeyMaskOfSums) {
  AttentionGraph graph;
  graph.input("x", {2, 6, 32}).floats("w", {32, 32}, [](std::int64_t) { return 0.1; }).node("MatMul", {"x", "w"}, "q");
  graph.input("k", {2, 5, 32}).input("v", {2, 5, 32}).input("lengths", {8}, 6);
  graph.node("MultiHeadAttention", {"q", "k", "v", "", "lengths"}, "y", {"num_heads=4"}, "com.microsoft");
  const Result<ImportedPipeline> imported = graph.imported("y");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_NE(fmt::format("{}", fmt::join(imported->notes, " ")).find("its key_padding_mask is not of shape"),
            std::string::npos);
}

TEST(OnnxAttention, KeepsABatchOfOneBesideALargerOne) {
  AttentionGraph graph(23);
  graph.input("x", {2, 6, 32}).input("mask", {1, 4, 6, 6});
  graph.node("Attention", {"x", "x", "x", "mask"}, "y", {"q_num_heads=4", "kv_num_heads=4"});
  EXPECT_EQ(operationsOf(graph.imported("y")).back(), "DotProductAttention");
}

TEST(OnnxAttention, NamesACache) {
  AttentionGraph graph(23);
  graph.input("x", {2, 6, 32}).floats("w", {32, 32}, [](std::int64_t) { return 0.1; }).node("MatMul", {"x", "w"}, "q");
  graph.input("k", {2, 4, 3, 8}).input("v", {2, 4, 3, 8});
  graph.node("Attention", {"q", "q", "q", "", "k", "v"}, "y", {"q_num_heads=4", "kv_num_heads=4"});
  const Result<ImportedPipeline> imported = graph.imported("y");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_NE(fmt::format("{}", fmt::join(imported->notes, " ")).find("it appends to a cache of keys"),
            std::string::npos);
}

TEST(OnnxAttention, SplitsAPackedProjection) {
  AttentionGraph graph;
  graph.input("x", {2, 6, 32}).floats("w", {32, 96}, [](std::int64_t) { return 0.1; });
  graph.integers("five", {2, 6, 3, 4, 8})
      .node("MatMul", {"x", "w"}, "packed")
      .node("Reshape", {"packed", "five"}, "parts");
  graph.node("Transpose", {"parts"}, "front", {"perm=2,0,3,1,4"});
  for (const std::int64_t part : {0, 1, 2}) {
    const std::string name(1, "qkv"[part]);
    graph.integers(name + ".begin", {part}).integers(name + ".end", {part + 1}).integers(name + ".axis", {0});
    graph.node("Slice", {"front", name + ".begin", name + ".end", name + ".axis"}, name + "1");
    graph.node("Squeeze", {name + "1", name + ".axis"}, name);
  }
  graph.node("Transpose", {"k"}, "kt", {"perm=0,1,3,2"}).node("MatMul", {"q", "kt"}, "s");
  graph.node("Softmax", {"s"}, "p", {"axis=-1"}).node("MatMul", {"p", "v"}, "o");
  const Result<ImportedPipeline> imported = graph.merged("o");
  EXPECT_EQ(operationsOf(imported), (Names{"Linear", "Split", "DotProductAttention", "Linear"}));
  EXPECT_EQ(attributesOf(imported, "Split")["sizes"], (Json{32, 32, 32}));
  EXPECT_EQ(attributesOf(imported, "DotProductAttention")["softmax_scale"], 1.0) << "no factor is a factor of 1";
}

/// name: a table [1, 1, 6, 8] of which neighbors are equal, from one of half the width.
void addTiled(AttentionGraph& graph, const std::string& name, const std::function<double(std::int64_t)>& value) {
  graph.floats(name + ".half", {1, 1, 6, 4}, [value](std::int64_t i) { return value(2 * i); });
  graph.integers(name + ".axis", {4}).integers(name + ".repeats", {1, 1, 1, 1, 2});
  graph.integers(name + ".shape", {1, 1, 6, 8}).node("Unsqueeze", {name + ".half", name + ".axis"}, name + ".column");
  graph.node("Tile", {name + ".column", name + ".repeats"}, name + ".tiled");
  graph.node("Reshape", {name + ".tiled", name + ".shape"}, name);
}

/// x cos + turned(x) sin, with one table of angles of this base, in multiples of a step if one is given.
AttentionGraph rotated(double base, bool isInterleaved, double change = 0.0, double step = 0.0, bool isTiled = false) {
  AttentionGraph graph;
  graph.input("x", {2, 6, 32}).heads("q", "x", 4);
  const auto angle = [base, isInterleaved](std::int64_t i) {
    const std::int64_t channel = i % 8, pair = isInterleaved ? channel / 2 : channel % 4;
    return static_cast<double>(i / 8) * std::pow(base, -static_cast<double>(pair) / 4.0);
  };
  const auto stored = [step](double value) { return step > 0.0 ? step * std::round(value / step) : value; };
  const auto cosine = [=](std::int64_t i) { return stored(std::cos(angle(i))) + (i == 20 ? change : 0.0); };
  const auto sine = [=](std::int64_t i) { return stored(std::sin(angle(i))); };
  if (isTiled) {
    addTiled(graph, "cos", cosine);
    addTiled(graph, "sin", sine);
  } else {
    graph.floats("cos", {1, 1, 6, 8}, cosine).floats("sin", {1, 1, 6, 8}, sine);
  }
  graph.integers("zero", {0}).integers("one", {1}).integers("two", {2}).integers("half", {4}).integers("all", {8});
  graph.integers("last", {-1}).integers("shape", {2, 4, 6, 8});
  if (isInterleaved) {
    graph.node("Slice", {"q", "zero", "all", "last", "two"}, "even")
        .node("Slice", {"q", "one", "all", "last", "two"}, "odd");
    graph.node("Neg", {"odd"}, "minus")
        .node("Unsqueeze", {"minus", "last"}, "a")
        .node("Unsqueeze", {"even", "last"}, "b");
    graph.node("Concat", {"a", "b"}, "pairs", {"axis=-1"}).node("Reshape", {"pairs", "shape"}, "turned_q");
  } else {
    graph.node("Slice", {"q", "zero", "half", "last"}, "first").node("Slice", {"q", "half", "all", "last"}, "second");
    graph.node("Neg", {"second"}, "minus").node("Concat", {"minus", "first"}, "turned_q", {"axis=-1"});
  }
  graph.node("Mul", {"q", "cos"}, "straight").node("Mul", {"turned_q", "sin"}, "across");
  return std::move(graph.node("Add", {"straight", "across"}, "rotated"));
}

TEST(OnnxAttention, RecoversTheBaseOfRotaryEmbeddings) {
  for (const double base : {10000.0, 500000.0, 1000000.0, 160000.0})
    for (const bool isInterleaved : {false, true}) {
      const Result<ImportedPipeline> imported = rotated(base, isInterleaved).merged("rotated");
      EXPECT_EQ(operationsOf(imported), (Names{"Linear", "RotaryPositionEmbedding", "Linear"}));
      EXPECT_EQ(attributesOf(imported, "RotaryPositionEmbedding"),
                (Values{{"dim", 8}, {"rotary_base", base}, {"interleaved", isInterleaved}, {"tensor_format", "bshd"}}));
    }
}

// repeat_interleave of TorchScript's exporter, as GPT-J has it.
TEST(OnnxAttention, RecoversTheBaseOfTiledTables) {
  EXPECT_EQ(
      attributesOf(rotated(500000.0, true, 0.0, 0.0, true).merged("rotated"), "RotaryPositionEmbedding")["rotary_base"],
      500000.0);
}

TEST(OnnxAttention, RecoversTheBaseOfQuantizedTables) {
  for (const double base : {10000.0, 500000.0})
    EXPECT_EQ(attributesOf(rotated(base, false, 0.0, 2.0 / 255.0).merged("rotated"),
                           "RotaryPositionEmbedding")["rotary_base"],
              base);
}

// The table as dynamo writes it for any number of tokens: from a Range to the extent that Shape gives of one axis.
TEST(OnnxAttention, ReadsAnglesOfAnyNumberOfTokens) {
  AttentionGraph graph;
  graph.sizes(2, -1).heads("q", "x", 4);
  graph.integers("zero", {0}).integers("one", {1}).integers("half", {4}).integers("all", {8}).integers("last", {-1});
  graph.number("begin", 0.0).number("step", 1.0);
  graph.node("Shape", {"x"}, "extent", {"start=1", "end=2"}).node("Squeeze", {"extent"}, "tokens");
  graph.node("Cast", {"tokens"}, "end", {"to=1"}).node("Range", {"begin", "end", "step"}, "positions");
  graph.node("Unsqueeze", {"positions", "last"}, "column").floats("frequencies", {1, 4}, [](std::int64_t i) {
    return std::pow(10000.0, -static_cast<double>(i) / 4.0);
  });
  graph.node("Mul", {"column", "frequencies"}, "angles").node("Concat", {"angles", "angles"}, "twice", {"axis=-1"});
  graph.node("Cos", {"twice"}, "cos").node("Sin", {"twice"}, "sin");
  graph.node("Slice", {"q", "zero", "half", "last"}, "first").node("Slice", {"q", "half", "all", "last"}, "second");
  graph.node("Neg", {"second"}, "minus").node("Concat", {"minus", "first"}, "turned_q", {"axis=-1"});
  graph.node("Mul", {"q", "cos"}, "straight").node("Mul", {"turned_q", "sin"}, "across");
  graph.node("Add", {"straight", "across"}, "rotated");
  EXPECT_EQ(operationsOf(graph.merged("rotated")), (Names{"Linear", "RotaryPositionEmbedding", "Linear"}));
}

// GPT-2's layers compute with matrices of rows.
TEST(OnnxAttention, TakesLayersOutOfTheReshapesAroundThem) {
  AttentionGraph graph;
  graph.input("x", {2, 6, 32}).integers("rows", {-1, 32}).integers("tokens", {2, 6, 16});
  graph.floats("w", {32, 16}, [](std::int64_t) { return 0.1; }).floats("b", {16}, [](std::int64_t) { return 1.0; });
  graph.node("Reshape", {"x", "rows"}, "flat").node("Gemm", {"flat", "w", "b"}, "h");
  EXPECT_EQ(operationsOf(graph.node("Reshape", {"h", "tokens"}, "y").imported("y")), (Names{"Linear"}));
}

TEST(OnnxAttention, LeavesAnglesThatNoBaseGives) {
  const Names operations = operationsOf(rotated(10000.0, false, 0.01).merged("rotated"));
  EXPECT_EQ(std::ranges::count(operations, "RotaryPositionEmbedding"), 0);
}

TEST(OnnxAttention, SaysWhyAttentionIsLeft) {
  AttentionGraph graph(23);
  graph.input("x", {2, 6, 32}).input("past", {2, 4, 3, 8}).heads("q", "x", 4).heads("k", "x", 4).heads("v", "x", 4);
  graph.node("Attention", {"q", "k", "v", "", "past", "past"}, "o");
  const Result<ImportedPipeline> imported = graph.merged("o");
  EXPECT_EQ(std::ranges::count(operationsOf(imported), "DotProductAttention"), 0);
  const auto isReason = [](const std::string& note) {
    return note.starts_with("Attention was not recognized because");
  };
  EXPECT_EQ(std::ranges::count_if(imported->notes, isReason), 1);
}

TEST(OnnxAttention, NamesACacheOfKeys) {
  AttentionGraph graph;
  graph.input("x", {2, 6, 32}).heads("q", "x", 4).heads("k_new", "x", 4).heads("v_new", "x", 4);
  for (const std::string name : {"k", "v"})
    graph.input(name + "_past", {2, 4, 3, 8}).node("Concat", {name + "_past", name + "_new"}, name, {"axis=2"});
  graph.node("Transpose", {"k"}, "kt", {"perm=0,1,3,2"}).node("MatMul", {"q", "kt"}, "s");
  graph.node("Softmax", {"s"}, "p", {"axis=-1"}).node("MatMul", {"p", "v"}, "o");
  const Result<ImportedPipeline> imported = graph.merged("o");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_NE(fmt::format("{}", fmt::join(imported->notes, " ")).find("such as those of a cache"), std::string::npos);
}

}  // namespace
}  // namespace fuseline
