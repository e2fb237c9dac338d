// Finds the layer behind attention between its transposes, and then the layers before it.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/batch_first.h"

#include "core/export/onnx/onnx_new_nodes.h"
#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fuseline {

namespace {

using Integers = std::vector<std::int64_t>;

bool isTranspose(const OnnxNode* node, std::initializer_list<std::int64_t> order) {
  if (!node || node->op_type() != "Transpose" || !node->domain().empty()) return false;
  if (node->input_size() != 1 || node->output_size() != 1) return false;
  const auto* const perm = findAttribute(*node, "perm");
  return perm && std::equal(perm->ints().begin(), perm->ints().end(), order.begin(), order.end());
}

void setOrder(OnnxNode& transpose, std::initializer_list<std::int64_t> order) {
  transpose.clear_attribute();
  ::onnx::AttributeProto& perm = *transpose.add_attribute();
  perm.set_name("perm");
  perm.set_type(::onnx::AttributeProto::INTS);
  for (const std::int64_t axis : order) perm.add_ints(axis);
}

class BatchFirst {
 public:
  explicit BatchFirst(::onnx::GraphProto& graph) : m_graph(graph), m_reading(graph) {
    for (const OnnxNode& node : graph.node())
      for (const std::string& input : readBy(node)) ++m_readers[input];
    for (const auto& output : graph.output()) ++m_readers[output.name()];
  }

  void run() {
    for (const OnnxNode& node : m_graph.node())
      if (isTranspose(&node, {1, 0, 2})) turnBack(node);
    if (m_changed.empty()) return;
    for (const OnnxNode& node : m_graph.node())
      if (isTranspose(&node, {1, 0, 2}) && !m_left.contains(node.output(0))) sink(node);
    write();
  }

 private:
  /// Its maker, if nothing else reads it.
  const OnnxNode* only(const std::string& tensor) const {
    const auto count = m_readers.find(tensor);
    const OnnxNode* const node = m_reading.maker(tensor);
    const bool isOnly = node && node->output_size() == 1 && node->output(0) == tensor && node->domain().empty();
    return isOnly && count != m_readers.end() && count->second == 1 ? node : nullptr;
  }

  const OnnxNode* only(const char* type, const std::string& tensor) const {
    const OnnxNode* const node = only(tensor);
    return node && node->op_type() == type && node->input_size() == 2 ? node : nullptr;
  }

  /// A constant that is one row.
  bool isRow(const std::string& tensor) const {
    const auto* const constant = m_reading.constant(tensor);
    return constant && constant->dims_size() <= 1;
  }

  const ::onnx::TensorProto* weightOf(const OnnxNode& product) const {
    const auto* const weight = m_reading.constant(inputOf(product, 1));
    return weight && weight->dims_size() == 2 ? weight : nullptr;
  }

  /// A MatMul with a weight, without or with a bias, or a Gemm. Nothing: the tensor is of no such layer.
  const OnnxNode* productAt(const std::string& tensor) const {
    const OnnxNode* node = only(tensor);
    if (node && node->op_type() == "Add" && isRow(inputOf(*node, 1)))
      node = only("MatMul", inputOf(*node, 0));
    else if (node && node->op_type() == "Add" && isRow(inputOf(*node, 0)))
      node = only("MatMul", inputOf(*node, 1));
    if (!node || !weightOf(*node)) return nullptr;
    const bool isGemm = node->op_type() == "Gemm" && integerOf(*node, "transA", 0) == 0 &&
                        (inputOf(*node, 2).empty() || isRow(inputOf(*node, 2)));
    return isGemm || node->op_type() == "MatMul" ? node : nullptr;
  }

  std::int64_t widthOf(const OnnxNode& product) const {
    const bool isTurned = product.op_type() == "Gemm" && integerOf(product, "transB", 0) != 0;
    return weightOf(product)->dims(isTurned ? 1 : 0);
  }

  /// The last number of a shape, which nodes may make.
  std::optional<std::int64_t> lastOf(const std::string& shape) const {
    if (const auto all = m_reading.integers(shape)) return all->empty() ? std::nullopt : std::optional(all->back());
    const OnnxNode* const concat = m_reading.makerOf("Concat", shape);
    return concat && concat->input_size() > 0 ? lastOf(concat->input(concat->input_size() - 1)) : std::nullopt;
  }

  /// Heads and channels are the row of the layer, as far as shapes are declared.
  bool isMerged(const OnnxNode& turned, const OnnxNode& product) const {
    const auto* const type = m_reading.type(turned.output(0));
    if (!type || type->shape().dim_size() != 4) return true;
    const auto &heads = type->shape().dim(2), &channels = type->shape().dim(3);
    return !heads.has_dim_value() || !channels.has_dim_value() ||
           heads.dim_value() * channels.dim_value() == widthOf(product);
  }

  /// [S, B, E] becomes [B, S, E]. Empty: it is not known how the shape is made.
  std::string exchanged(const std::string& shape) {
    const std::string name = shape + "/batch_first";
    if (const auto all = m_reading.integers(shape)) {
      if (all->size() != 3 || std::ranges::count(*all, 0) > 0) return {};  // 0 is an extent of the input, in its order
      if (!m_made.insert(name).second) return name;
      ::onnx::TensorProto& tensor = *m_graph.add_initializer();
      tensor.set_name(name);
      tensor.set_data_type(::onnx::TensorProto::INT64);
      tensor.add_dims(3);
      for (const std::size_t axis : {1U, 0U, 2U}) tensor.add_int64_data((*all)[axis]);
      return name;
    }
    const OnnxNode* const concat = m_reading.makerOf("Concat", shape);
    if (!concat || concat->input_size() != 3) return {};
    if (!m_made.insert(name).second) return name;
    OnnxNode& made = m_before[concat->output(0)].emplace_back(*concat);
    made.mutable_input()->SwapElements(0, 1);
    made.set_name(name);
    made.set_output(0, name);
    return name;
  }

  /// Attention, [B, H, S, D], as [S, B, H, D], its rows through a layer, and the result as [B, S, E].
  void turnBack(const OnnxNode& last) {
    const OnnxNode* const apart = only("Reshape", last.input(0));
    const OnnxNode* const product = apart ? productAt(apart->input(0)) : nullptr;
    const OnnxNode* const merged = product ? only("Reshape", product->input(0)) : nullptr;
    const OnnxNode* const first = merged ? m_reading.maker(merged->input(0)) : nullptr;
    if (!isTranspose(first, {2, 0, 1, 3}) || lastOf(merged->input(1)) != widthOf(*product) ||
        !isMerged(*first, *product))
      return;
    const std::string shape = exchanged(apart->input(1));
    if (shape.empty()) return;
    OnnxNode turned = *first;
    turned.set_name(first->output(0) + "/batch_first");
    turned.set_output(0, first->output(0) + "/batch_first");
    setOrder(turned, {0, 2, 1, 3});
    if (m_made.insert(turned.output(0)).second) m_before[first->output(0)].push_back(turned);
    OnnxNode rows = *merged;
    rows.set_input(0, turned.output(0));
    // Where something passes it on, it stays.
    if (merged->input(0) == first->output(0) && --m_readers[first->output(0)] == 0) m_left.insert(first->output(0));
    m_changed[merged->output(0)] = {rows};
    OnnxNode whole = *apart;
    whole.set_input(1, shape);
    whole.set_output(0, last.output(0));
    m_changed[apart->output(0)] = {whole};
    m_left.insert(last.output(0));
  }

  /// Layers that read the exchanged input read it as it was, and their results are exchanged.
  void sink(const OnnxNode& transpose) {
    std::vector<const OnnxNode*> products;
    for (const OnnxNode& node : m_graph.node())
      if (std::ranges::count(node.input(), transpose.output(0)) > 0) products.push_back(&node);
    const auto isProduct = [&](const OnnxNode* node) {
      return node->op_type() == "MatMul" && node->domain().empty() && node->input(0) == transpose.output(0) &&
             node->output_size() == 1 && weightOf(*node);
    };
    if (products.empty() || !std::ranges::all_of(products, isProduct) ||
        m_readers[transpose.output(0)] != static_cast<int>(products.size()))
      return;
    for (const OnnxNode* const product : products) addSunk(transpose, *product);
    m_left.insert(transpose.output(0));
  }

  void addSunk(const OnnxNode& transpose, const OnnxNode& product) {
    std::vector<OnnxNode> nodes = {product};
    nodes[0].set_input(0, transpose.input(0));
    const OnnxNode* bias = nullptr;
    for (const OnnxNode& node : m_graph.node())
      if (m_readers[product.output(0)] == 1 && node.op_type() == "Add" && node.input_size() == 2 &&
          node.output_size() == 1)
        for (const int side : {0, 1})
          if (node.input(side) == product.output(0) && isRow(node.input(1 - side))) bias = &node;
    if (bias) {
      nodes.push_back(*bias);
      for (std::string& input : *nodes[1].mutable_input())
        if (input == product.output(0)) input += "/batch_first";
      m_left.insert(bias->output(0));
    }
    for (OnnxNode& node : nodes) node.set_output(0, node.output(0) + "/batch_first");
    OnnxNode& turned = nodes.emplace_back(transpose);
    turned.set_name(product.output(0) + "/batch_first");
    turned.set_input(0, nodes[nodes.size() - 2].output(0));
    turned.set_output(0, bias ? bias->output(0) : product.output(0));
    m_changed[product.output(0)] = nodes;
  }

  void write() {
    ::google::protobuf::RepeatedPtrField<OnnxNode> nodes;
    const auto add = [&](const std::vector<OnnxNode>& all) {
      for (const OnnxNode& node : all) *nodes.Add() = node;
    };
    for (const OnnxNode& node : m_graph.node()) {
      const std::string name = node.output_size() > 0 ? node.output(0) : std::string();
      if (const auto before = m_before.find(name); before != m_before.end()) add(before->second);
      if (const auto changed = m_changed.find(name); changed != m_changed.end())
        add(changed->second);
      else if (!m_left.contains(name))
        *nodes.Add() = node;
    }
    m_graph.mutable_node()->Swap(&nodes);
  }

  ::onnx::GraphProto& m_graph;
  const OnnxReading m_reading;
  std::map<std::string, int> m_readers;
  // By the first output of a node: what stands before it, what stands in its place, and nodes that go.
  std::map<std::string, std::vector<OnnxNode>> m_before, m_changed;
  std::set<std::string> m_left, m_made;
};

}  // namespace

void moveBatchFirst(::onnx::GraphProto& graph) {
  if (std::ranges::any_of(graph.node(), [](const OnnxNode& node) { return isTranspose(&node, {2, 0, 1, 3}); }))
    BatchFirst(graph).run();
}

}  // namespace fuseline
