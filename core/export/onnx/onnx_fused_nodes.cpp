// One function per fused op. Intermediate tensors have the type of the node's output if they have the same shape.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_fused_nodes.h"

#include "core/export/onnx/kept/old_forms.h"
#include "core/export/onnx/onnx_attention.h"
#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Inputs = std::vector<std::string>;

class FusedNodes {
 public:
  FusedNodes(::onnx::GraphProto& graph, std::int64_t opset) : m_graph(graph), m_opset(opset) {
    for (const auto* const infos : {&graph.input(), &graph.value_info(), &graph.output()})
      for (const auto& info : *infos) m_types.emplace(info.name(), info.type());
    for (const auto& tensor : graph.initializer()) m_constants.emplace(tensor.name(), &tensor);
    for (const auto& node : graph.node()) noteMade(node);
    for (const auto& output : graph.output()) m_read.insert(output.name());
  }

  /// As long as nothing is to be replaced the graph is left alone.
  void split() {
    ::onnx::GraphProto nodes;
    m_nodes = &nodes;
    bool isChanged = false;
    const auto old = m_graph.node();
    for (const ::onnx::NodeProto& node : old) {
      const bool isReplaced = replace(node);
      if (!isReplaced) *nodes.add_node() = node;
      isChanged = isChanged || isReplaced;
    }
    if (isChanged) *m_graph.mutable_node() = nodes.node();
  }

 private:
  void noteMade(const ::onnx::NodeProto& node) {
    for (const std::string& output : node.output()) m_taken.insert(output);
    for (const std::string& name : readBy(node)) m_read.insert(name);
    const auto* const value = node.op_type() == "Constant" ? findAttribute(node, "value") : nullptr;
    if (value && node.output_size() > 0) m_constants.emplace(node.output(0), &value->t());
    const bool isDequantized = node.op_type() == "DequantizeLinear" && node.output_size() > 0;
    if (isDequantized) m_dequantized.insert(node.output(0));
  }

  bool replace(const ::onnx::NodeProto& node) {
    constexpr std::array kReplacements = {std::pair("BiasAdd", &FusedNodes::biasAdd),
                                          std::pair("BiasGelu", &FusedNodes::biasGelu),
                                          std::pair("FastGelu", &FusedNodes::fastGelu),
                                          std::pair("FusedGemm", &FusedNodes::fusedGemm),
                                          std::pair("FusedMatMul", &FusedNodes::fusedMatMul),
                                          std::pair("Gelu", &FusedNodes::exactGelu),
                                          std::pair("GemmFastGelu", &FusedNodes::gemmFastGelu),
                                          std::pair("QuickGelu", &FusedNodes::quickGelu),
                                          std::pair("SkipLayerNormalization", &FusedNodes::skipLayerNorm),
                                          std::pair("SkipSimplifiedLayerNormalization", &FusedNodes::skipRmsNorm)};
    if (node.output_size() == 0) return false;
    m_node = &node;
    if (node.domain().empty() && node.op_type() == "Gemm") return gemm();
    if (node.domain().empty() && node.op_type() == "QLinearMatMul") return quantizedMatMul();
    if (node.domain().empty() && node.op_type() == "SoftmaxCrossEntropyLoss") return lossWithProbabilities();
    if (node.domain().empty() && node.op_type() == "Identity") return outputOfAnInput();
    if (node.domain() != "com.microsoft") return false;
    const auto* const found =
        std::ranges::find(kReplacements, node.op_type(), [](const auto& each) { return std::string_view(each.first); });
    return found != kReplacements.end() && (this->*found->second)();
  }

  // ---- settings of the new nodes

  const std::string& input(int index) const { return inputOf(*m_node, index); }
  bool hasInput(int index) const { return !input(index).empty(); }

  std::string unique(const std::string& wish) {
    std::string name = wish;
    for (int number = 2; !m_taken.insert(name).second; ++number) name = fmt::format("{}_{}", wish, number);
    return name;
  }

  /// A node of the standard ops that makes this tensor.
  ::onnx::NodeProto& add(const char* type, const Inputs& inputs, const std::string& output, const char* part) {
    ::onnx::NodeProto& made = *m_nodes->add_node();
    made.set_op_type(type);
    made.set_name(fmt::format("{}_{}", m_node->name().empty() ? m_node->output(0) : m_node->name(), part));
    for (const std::string& name : inputs) made.add_input(name);
    made.add_output(output);
    return made;
  }

  /// A tensor of the type of another.
  std::string between(const char* part, const std::string& like) {
    std::string name = unique(fmt::format("{}_{}", m_node->output(0), part));
    if (const auto type = m_types.find(like); type != m_types.end()) declare(name, type->second);
    return name;
  }

  void declare(const std::string& name, const ::onnx::TypeProto& type) {
    ::onnx::ValueInfoProto& info = *m_graph.add_value_info();
    info.set_name(name);
    *info.mutable_type() = type;
    m_types.emplace(name, type);
  }

  std::string addBetween(const char* type, const Inputs& inputs, const char* part) {
    std::string made = between(part, m_node->output(0));
    add(type, inputs, made, part);
    return made;
  }

  /// In float32: code that compares it with a number of the model rounds that number.
  std::string number(double value) {
    const std::string name = unique(fmt::format("{}_number", m_node->output(0)));
    ::onnx::TensorProto& tensor = *m_graph.add_initializer();
    tensor.set_name(name);
    const auto type = m_types.find(m_node->output(0));
    const std::int32_t element = type == m_types.end() ? 0 : type->second.tensor_type().elem_type();
    const DType dtype = floatTypeOf(element).value_or(DType::F32);
    tensor.set_data_type(onnxType(dtype));
    const Tensor encoded = Tensor::fromDoubles({.dtype = dtype, .shape = {}}, std::array{value});
    tensor.set_raw_data(encoded.data.data(), encoded.data.size());
    return name;
  }

  /// A constant with elements in another file keeps them there: a node then computes its multiplication.
  std::string scaledConstant(const ::onnx::TensorProto& constant, double factor) {
    const std::string name = unique(fmt::format("{}_summand", m_node->output(0)));
    const DType dtype = floatTypeOf(constant.data_type()).value_or(DType::F32);
    const Result<Tensor> scaled = readWeight({.constant = &constant, .factor = factor, .isSpread = true},
                                             {.dtype = dtype, .shape = shapeOf(constant)}, {});
    if (!scaled) {
      add("Mul", {constant.name(), number(factor)}, name, "summand");
      return name;
    }
    ::onnx::TensorProto& tensor = *m_graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnxType(dtype));
    *tensor.mutable_dims() = constant.dims();
    tensor.set_raw_data(scaled->data.data(), scaled->data.size());
    return name;
  }

  static void set(::onnx::NodeProto& node, const char* name, std::int64_t value) {
    ::onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(::onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  static void set(::onnx::NodeProto& node, const char* name, float value) {
    ::onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(::onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
  }
  static void set(::onnx::NodeProto& node, const char* name, const std::string& value) {
    ::onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(::onnx::AttributeProto::STRING);
    attribute.set_s(value);
  }

  // ---- activations

  bool gelu(const std::string& x, const char* approximate) {
    set(add("Gelu", {x}, m_node->output(0), "gelu"), "approximate", std::string(approximate));
    return true;
  }

  bool exactGelu() { return gelu(input(0), "none"); }
  bool biasGelu() { return gelu(addBetween("Add", {input(0), input(1)}, "bias"), "none"); }
  bool fastGelu() { return gelu(hasInput(1) ? addBetween("Add", {input(0), input(1)}, "bias") : input(0), "tanh"); }

  bool gemmFastGelu() {
    const std::string product = addBetween("MatMul", {input(0), input(1)}, "product");
    return gelu(hasInput(2) ? addBetween("Add", {product, input(2)}, "bias") : product, "tanh");
  }

  bool quickGelu() {
    const double alpha = realOf(*m_node, "alpha", 1.702);
    const std::string scaled = alpha == 1.0 ? input(0) : addBetween("Mul", {input(0), number(alpha)}, "scaled");
    add("Mul", {input(0), addBetween("Sigmoid", {scaled}, "sigmoid")}, m_node->output(0), "gelu");
    return true;
  }

  bool biasAdd() {
    add("Add", {addBetween("Add", {input(0), input(1)}, "bias"), input(2)}, m_node->output(0), "sum");
    return true;
  }

  // ---- outputs

  /// Nodes that pass an input on are nothing elsewhere; an output of the model needs an op.
  bool outputOfAnInput() {
    const auto isNamed = [](const std::string& name) {
      return [&name](const ::onnx::ValueInfoProto& info) { return info.name() == name; };
    };
    const auto from = std::ranges::find_if(m_graph.input(), isNamed(input(0)));
    const bool isOne = from != m_graph.input().end() && !m_constants.contains(input(0)) &&
                       floatTypeOf(from->type().tensor_type().elem_type());
    if (!isOne || std::ranges::none_of(m_graph.output(), isNamed(m_node->output(0)))) return false;
    add("Identity", {input(0)}, m_node->output(0), "output").set_domain(kFuselineDomain);
    return true;
  }

  // ---- losses

  /// The logarithms of the probabilities, a second output, are a node of their own.
  bool lossWithProbabilities() {
    if (m_node->output_size() < 2 || !m_read.contains(m_node->output(1))) return false;
    const auto type = m_types.find(input(0));
    const int rank = type == m_types.end() ? 0 : type->second.tensor_type().shape().dim_size();
    if (m_opset < kOpsetOfSoftmaxOfOneAxis && rank != 2) return false;
    ::onnx::NodeProto& loss = *m_nodes->add_node();
    loss = *m_node;
    loss.mutable_output()->RemoveLast();
    set(add("LogSoftmax", {input(0)}, m_node->output(1), "log_prob"), "axis", std::int64_t{1});
    return true;
  }

  // ---- sums with norms

  /// x, skip, then gamma and the norm's further inputs, then a bias of x. Outputs: the norm, its mean and deviation,
  /// and the sum.
  bool skipNorm(const char* type, int numNormInputs) {
    const auto output = [&](int index) -> std::string {
      const bool isThere = index < m_node->output_size() && m_read.contains(m_node->output(index));
      return isThere || index == 0 ? m_node->output(index) : "";
    };
    if (!output(1).empty() || !output(2).empty() || !hasInput(2)) return false;
    const int bias = 2 + numNormInputs;
    const std::string x = hasInput(bias) ? addBetween("Add", {input(0), input(bias)}, "bias") : input(0);
    const std::string sum = output(3).empty() ? between("sum", output(0)) : output(3);
    add("Add", {x, input(1)}, sum, "sum");
    Inputs inputs = {sum};
    for (int i = 2; i < bias && hasInput(i); ++i) inputs.push_back(input(i));
    ::onnx::NodeProto& norm = add(type, inputs, output(0), "norm");
    constexpr double kDefault = 1e-12;  // kDefaultSkipLayerNormEpsilon of onnxruntime
    set(norm, "epsilon", static_cast<float>(realOf(*m_node, "epsilon", kDefault)));
    set(norm, "axis", std::int64_t{-1});
    return true;
  }

  bool skipLayerNorm() { return skipNorm("LayerNormalization", 2); }
  bool skipRmsNorm() { return skipNorm("SimplifiedLayerNormalization", 1); }

  // ---- GEMMs

  bool isMatrix(const std::string& name) const {
    const auto constant = m_constants.find(name);
    return constant != m_constants.end() && constant->second->dims_size() == 2;
  }

  /// With the last two axes exchanged; empty where the graph does not say how many there are.
  std::string transposed(const std::string& name, const char* part) {
    std::vector<std::int64_t> perm = {1, 0};
    ::onnx::TypeProto made;
    if (!isMatrix(name)) {
      auto type = m_types.find(name);
      const bool isDeclared = type != m_types.end();
      if (!isDeclared) type = m_types.find(m_node->output(0));  // whose factors usually have the same rank
      const int rank = type == m_types.end() ? 0 : type->second.tensor_type().shape().dim_size();
      if (rank < 2) return "";
      perm.resize(static_cast<std::size_t>(rank));
      for (int axis = 0; axis < rank; ++axis) perm[static_cast<std::size_t>(axis)] = axis;
      std::swap(perm[static_cast<std::size_t>(rank - 2)], perm[static_cast<std::size_t>(rank - 1)]);
      if (isDeclared) {
        made = type->second;
        made.mutable_tensor_type()->mutable_shape()->mutable_dim()->SwapElements(rank - 2, rank - 1);
      }
    }
    const std::string output = unique(fmt::format("{}_{}", m_node->output(0), part));
    if (made.has_tensor_type()) declare(output, made);
    ::onnx::AttributeProto& attribute = *add("Transpose", {name}, output, part).add_attribute();
    attribute.set_name("perm");
    attribute.set_type(::onnx::AttributeProto::INTS);
    for (const std::int64_t axis : perm) attribute.add_ints(axis);
    return output;
  }

  bool fusedMatMul() {
    const auto isSet = [&](const char* name) { return integerOf(*m_node, name, 0) != 0; };
    if (isSet("transBatchA") || isSet("transBatchB")) return false;
    const std::string a = isSet("transA") ? transposed(input(0), "a") : input(0);
    const std::string b = isSet("transB") && !a.empty() ? transposed(input(1), "b") : input(1);
    if (a.empty() || b.empty()) return false;
    const double alpha = realOf(*m_node, "alpha", 1.0);
    if (alpha == 1.0)
      add("MatMul", {a, b}, m_node->output(0), "product");
    else
      add("Mul", {addBetween("MatMul", {a, b}, "product"), number(alpha)}, m_node->output(0), "scaled");
    return true;
  }

  void addGemm(const Inputs& inputs, const std::string& output) {
    ::onnx::NodeProto& made = add("Gemm", inputs, output, "product");
    set(made, "alpha", static_cast<float>(realOf(*m_node, "alpha", 1.0)));
    if (inputs.size() > 2) set(made, "beta", static_cast<float>(realOf(*m_node, "beta", 1.0)));
    set(made, "transB", integerOf(*m_node, "transB", 0));
  }

  std::string dequantized(int index, const char* part) {
    const std::string made = unique(fmt::format("{}_{}", m_node->output(0), part));
    set(add("DequantizeLinear", {input(index), input(index + 1), input(index + 2)}, made, part), "axis",
        std::int64_t{1});
    return made;
  }

  /// Inputs: both factors and then the result, each with its scale and zero point. Scales of rows of x have no op.
  bool quantizedMatMul() {
    const auto scale = m_constants.find(input(1));
    if (m_node->input_size() != 8 || scale == m_constants.end() || numElements(shapeOf(*scale->second)) != 1)
      return false;
    const std::string a = dequantized(0, "a"), b = dequantized(3, "b");
    const std::string product = unique(fmt::format("{}_product", m_node->output(0)));
    add("MatMul", {a, b}, product, "product");
    add("QuantizeLinear", {product, input(6), input(7)}, m_node->output(0), "quantized");
    return true;
  }

  /// One number per column, or one for all: the form of a layer's bias.
  bool isRow(const std::string& name, const std::string& matrix) const {
    if (m_dequantized.contains(name)) return true;
    const auto row = m_constants.find(name), of = m_constants.find(matrix);
    if (row == m_constants.end()) return false;
    const Shape shape = shapeOf(*row->second);
    const std::int64_t elements = numElements(shape);
    if (elements == 1) return true;
    if (shape.empty() || shape.back() != elements) return false;
    const int columns = integerOf(*m_node, "transB", 0) != 0 ? 0 : 1;
    return of == m_constants.end() || of->second->dims_size() != 2 || of->second->dims(columns) == elements;
  }

  /// False: it is a layer already.
  bool gemm() {
    const bool isRowAdded = !hasInput(2) || isRow(input(2), input(1));
    const bool isTransposed = integerOf(*m_node, "transA", 0) != 0;
    if (isRowAdded && !isTransposed) return false;
    const std::string a = isTransposed ? transposed(input(0), "a") : input(0);
    if (a.empty()) return false;
    if (isRowAdded) {
      Inputs inputs = {a, input(1)};
      if (hasInput(2)) inputs.push_back(input(2));
      addGemm(inputs, m_node->output(0));
      return true;
    }
    const std::string product = between("product", m_node->output(0));
    addGemm({a, input(1)}, product);
    const double beta = realOf(*m_node, "beta", 1.0);
    std::string summand = input(2);
    if (beta != 1.0 && m_constants.contains(summand)) {
      summand = scaledConstant(*m_constants.at(summand), beta);
    } else if (beta != 1.0) {
      summand = between("summand", input(2));
      add("Mul", {input(2), number(beta)}, summand, "summand");
    }
    add("Add", {product, summand}, m_node->output(0), "sum");
    return true;
  }

  /// A Gemm, then a function with its parameters.
  bool fusedGemm() {
    const std::string type = textOf(*m_node, "activation", "");
    if (type.empty()) return false;
    ::onnx::NodeProto product = *m_node;
    product.clear_domain();
    product.set_op_type("Gemm");
    product.set_output(0, between("biased", m_node->output(0)));
    auto& attributes = *product.mutable_attribute();
    attributes.erase(std::remove_if(attributes.begin(), attributes.end(),
                                    [](const auto& each) { return each.name().starts_with("activation"); }),
                     attributes.end());
    const ::onnx::NodeProto fused = *m_node;
    if (!replace(product)) *m_nodes->add_node() = product;
    m_node = &fused;
    ::onnx::NodeProto& made = add(type.c_str(), {product.output(0)}, fused.output(0), "activation");
    for (const char* const name : {"alpha", "beta", "gamma"})
      if (const auto* const value = findAttribute(fused, fmt::format("activation_{}", name)))
        set(made, name, value->f());
    return true;
  }

  ::onnx::GraphProto& m_graph;
  std::int64_t m_opset;
  ::onnx::GraphProto* m_nodes = nullptr;  // those of the new graph
  const ::onnx::NodeProto* m_node = nullptr;
  std::set<std::string> m_taken;
  std::set<std::string> m_read;
  std::set<std::string> m_dequantized;
  std::map<std::string, ::onnx::TypeProto> m_types;
  std::map<std::string, const ::onnx::TensorProto*> m_constants;
};

}  // namespace

void splitFusedNodes(::onnx::GraphProto& graph, std::int64_t opset) { FusedNodes(graph, opset).split(); }

}  // namespace fuseline
