// Looks upstream from each Reshape, whose output the last new node produces.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/flat_layers.h"

#include "core/export/onnx/onnx_reading.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

struct FlatLayer {
  const ::onnx::NodeProto* product = nullptr;  // MatMul or Gemm
  std::string x, bias;                         // with all axes; empty: there is none
};

class FlatLayers {
 public:
  FlatLayers(::onnx::GraphProto& graph, const OnnxNodeFacts::Lookup& lookup) : m_graph(graph), m_lookup(lookup) {
    for (const ::onnx::NodeProto& node : graph.node()) {
      for (const std::string& input : readBy(node)) ++m_numReaders[input];
      for (const std::string& output : node.output()) m_makers.emplace(output, &node);
    }
    for (const auto& output : graph.output()) ++m_numReaders[output.name()];
  }

  void run() {
    ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
    bool isChanged = false;
    for (const ::onnx::NodeProto& node : m_graph.node())
      if (const auto layer = layerBefore(node)) {
        write(*layer, node, nodes);
        isChanged = true;
      } else {
        *nodes.Add() = node;
      }
    if (!isChanged) return;
    m_graph.mutable_node()->Swap(&nodes);
    dropUnread();
  }

 private:
  const ::onnx::NodeProto* maker(const std::string& tensor, const char* type) const {
    const auto found = m_makers.find(tensor);
    const bool isOfType =
        found != m_makers.end() && found->second->op_type() == type && found->second->domain().empty();
    return isOfType ? found->second : nullptr;
  }

  const OnnxExtents* shapeOf(const std::string& tensor) const {
    const OnnxFact* const fact = m_lookup(tensor);
    return fact && fact->shape ? &*fact->shape : nullptr;
  }
  bool isRank(const std::string& tensor, std::size_t rank) const {
    const OnnxExtents* const shape = shapeOf(tensor);
    return shape && shape->size() == rank;
  }
  bool isReadOnce(const std::string& tensor) const {
    const auto found = m_numReaders.find(tensor);
    return found != m_numReaders.end() && found->second == 1;
  }

  /// The factor or sum has no axes in front.
  bool isVector(const std::string& tensor) const { return isRank(tensor, 1); }

  static bool isPlain(const ::onnx::NodeProto& gemm) {
    return integerOf(gemm, "transA", 0) == 0 && realOf(gemm, "alpha", 1.0) == 1.0 && realOf(gemm, "beta", 1.0) == 1.0;
  }

  std::optional<FlatLayer> productAt(const std::string& tensor) const {
    if (!isReadOnce(tensor)) return std::nullopt;
    FlatLayer layer{.product = maker(tensor, "Gemm")};
    if (layer.product) layer.bias = inputOf(*layer.product, 2);
    if (layer.product && (!isPlain(*layer.product) || (!layer.bias.empty() && !isVector(layer.bias))))
      return std::nullopt;
    if (!layer.product) layer.product = maker(tensor, "MatMul");
    return layer.product && isRank(inputOf(*layer.product, 1), 2) ? std::optional(layer) : std::nullopt;
  }

  std::optional<FlatLayer> biasedAt(const std::string& tensor) const {
    const auto* const sum = maker(tensor, "Add");
    if (!sum || !isReadOnce(tensor) || sum->input_size() != 2) return productAt(tensor);
    for (const int bias : {0, 1}) {
      auto layer = productAt(sum->input(1 - bias));
      if (!layer || !layer->bias.empty() || !isVector(sum->input(bias))) continue;
      layer->bias = sum->input(bias);
      return layer;
    }
    return std::nullopt;
  }

  /// The layer whose rows this Reshape parts again.
  std::optional<FlatLayer> layerBefore(const ::onnx::NodeProto& node) const {
    if (node.op_type() != "Reshape" || !node.domain().empty() || node.output_size() == 0) return std::nullopt;
    auto layer = biasedAt(inputOf(node, 0));
    const auto* const flatten = layer ? maker(inputOf(*layer->product, 0), "Reshape") : nullptr;
    if (!flatten) return std::nullopt;
    layer->x = inputOf(*flatten, 0);
    const OnnxExtents *const from = shapeOf(layer->x), *const flat = shapeOf(flatten->output(0)),
                             *const to = shapeOf(node.output(0));
    const bool isKnown = from && flat && to && from->size() > 2 && flat->size() == 2 && to->size() == from->size();
    if (!isKnown || !(from->back() == flat->back())) return std::nullopt;
    return std::equal(from->begin(), from->end() - 1, to->begin()) ? layer : std::nullopt;
  }

  /// From the last node on, so that the nodes before a dropped one follow.
  void dropUnread() {
    m_numReaders.clear();
    for (const ::onnx::NodeProto& node : m_graph.node())
      for (const std::string& input : readBy(node)) ++m_numReaders[input];
    for (const auto& output : m_graph.output()) ++m_numReaders[output.name()];
    auto& nodes = *m_graph.mutable_node();
    std::set<int> dropped;
    for (int position = nodes.size() - 1; position >= 0; --position) {
      const ::onnx::NodeProto& node = nodes.Get(position);
      if (node.output_size() != 1 || !m_left.contains(node.output(0)) || m_numReaders[node.output(0)] > 0) continue;
      for (const std::string& input : readBy(node)) --m_numReaders[input];
      dropped.insert(position);
    }
    ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
    for (int position = 0; position < nodes.size(); ++position)
      if (!dropped.contains(position)) kept.Add()->Swap(nodes.Mutable(position));
    nodes.Swap(&kept);
  }

  static ::onnx::NodeProto& add(const char* type, const std::string& a, const std::string& b, const std::string& output,
                                ::google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes) {
    ::onnx::NodeProto& made = *nodes.Add();
    made.set_op_type(type);
    made.add_input(a);
    if (!b.empty()) made.add_input(b);
    made.add_output(output);
    return made;
  }

  void write(const FlatLayer& layer, const ::onnx::NodeProto& reshape,
             ::google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes) {
    const std::string& output = reshape.output(0);
    m_left.insert({layer.product->input(0), layer.product->output(0), reshape.input(0)});
    std::string weight = inputOf(*layer.product, 1);
    if (integerOf(*layer.product, "transB", 0) != 0) {
      ::onnx::NodeProto& turned = add("Transpose", weight, "", output + "/weight", nodes);
      ::onnx::AttributeProto& perm = *turned.add_attribute();
      perm.set_name("perm");
      perm.set_type(::onnx::AttributeProto::INTS);
      perm.add_ints(1);
      perm.add_ints(0);
      weight = turned.output(0);
    }
    const std::string product = layer.bias.empty() ? output : output + "/product";
    add("MatMul", layer.x, weight, product, nodes).set_name(layer.product->name());
    if (!layer.bias.empty()) add("Add", product, layer.bias, output, nodes).set_name(layer.product->name());
  }

  ::onnx::GraphProto& m_graph;
  const OnnxNodeFacts::Lookup& m_lookup;
  std::map<std::string, int> m_numReaders;
  std::set<std::string> m_left;  // outputs of nodes that a layer no longer needs
  std::map<std::string, const ::onnx::NodeProto*> m_makers;
};

}  // namespace

void unflattenLayers(::onnx::GraphProto& graph, const OnnxNodeFacts::Lookup& lookup) {
  FlatLayers(graph, lookup).run();
}

}  // namespace fuseline
