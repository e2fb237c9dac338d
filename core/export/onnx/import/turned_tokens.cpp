// Walks downstream from the transposes; what cannot be turned takes the transposes that it comes from out.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/turned_tokens.h"

#include "core/ops/catalog.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

/// How a tensor stands while its layer is turned.
struct TurnedTensor {
  bool isFlat = false;         // [tokens, ..], of both axes together
  std::set<std::string> from;  // outputs of the transposes that it comes from
};

bool isTokenTranspose(const ::onnx::NodeProto& node) {
  const auto* const order = findAttribute(node, "perm");
  return node.op_type() == "Transpose" && node.domain().empty() && order && order->ints_size() == 3 &&
         order->ints(0) == 1 && order->ints(1) == 0;
}

bool isActivation(const std::string& name) {
  const FusibleOperation* const operation = builtinOperations().find(name);
  return operation && operation->category == "Activation";
}

/// Computes each token by itself, along the last axis.
bool isByToken(const FoundOperation& found) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "Linear", "BasicLinear", "Bias", "AddExtraInput", "MakeExtraOutput", "ConstantScale", "Split", "Identity"};
  if (found.operation == "LayerNorm" || found.operation == "RMSNorm")
    return found.attributes.value("normalized_shape", Json::array()).size() == 1;
  return std::ranges::find(kNames, found.operation) != kNames.end() || isActivation(found.operation);
}

bool isTokenInput(std::string_view port) { return port == "x" || port == "k" || port == "v"; }

class TurningTokens {
 public:
  explicit TurningTokens(FoundGraph& graph) : m_graph(graph) {
    for (const LeftOutNode& left : graph.leftOut)
      if (isTokenTranspose(*left.node)) m_transposes.push_back(&left);
    std::ranges::sort(m_transposes, {}, &LeftOutNode::position);
    noteOtherReaders();
  }

  void run() {
    if (m_transposes.empty()) return;
    do {
      walk();
    } while (!m_refused.empty() && refuse());
    if (!m_ends.empty()) apply();
  }

 private:
  const std::string& source(const std::string& tensor) const { return m_graph.reading.source(tensor); }
  static const std::string& in(const LeftOutNode& transpose) { return transpose.part.inputs.front(); }
  static const std::string& out(const LeftOutNode& transpose) { return transpose.part.outputs.front(); }

  /// Tensors that outputs of the graph, or nodes other than these transposes, read.
  void noteOtherReaders() {
    for (const LeftOutNode& left : m_graph.leftOut)
      if (!isTokenTranspose(*left.node)) m_readByOthers.insert(left.part.inputs.begin(), left.part.inputs.end());
    for (const auto& output : m_graph.reading.graph().output()) m_readByOthers.insert(source(output.name()));
  }

  bool isRefused(const std::string& transpose) const { return m_never.contains(transpose); }

  void walk() {
    m_turned.clear();
    m_ends.clear();
    m_refused.clear();
    auto next = m_transposes.begin();
    for (const ImportedOperation& each : m_graph.operations) {
      for (; next != m_transposes.end() && (*next)->position < each.position; ++next) pass(**next);
      turn(each);
    }
    for (; next != m_transposes.end(); ++next) pass(**next);
    for (const auto& [tensor, turned] : m_turned)
      if (m_readByOthers.contains(tensor)) m_refused.insert(turned.from.begin(), turned.from.end());
  }

  /// A layer begins or ends.
  void pass(const LeftOutNode& transpose) {
    const auto found = m_turned.find(in(transpose));
    if (found == m_turned.end()) {
      if (!isRefused(out(transpose))) m_turned[out(transpose)] = {.from = {out(transpose)}};
      return;
    }
    if (found->second.isFlat || m_readByOthers.contains(out(transpose))) return refuse(found->second);
    m_ends.insert(out(transpose));
  }

  void refuse(const TurnedTensor& turned) { m_refused.insert(turned.from.begin(), turned.from.end()); }
  /// True: again, without those that were refused.
  bool refuse() {
    m_never.insert(m_refused.begin(), m_refused.end());
    return true;
  }

  void turn(const ImportedOperation& operation) {
    std::optional<TurnedTensor> common;
    bool isMixed = false;
    for (const auto& [port, tensor] : operation.found.inputs) {
      const auto found = m_turned.find(source(tensor));
      if (found == m_turned.end()) {
        isMixed = isMixed || operation.found.operation != "DotProductAttention" || isTokenInput(port);
        continue;
      }
      isMixed = isMixed || (common && common->isFlat != found->second.isFlat) || !isTokenPort(operation.found, port);
      if (!common) common = found->second;
      common->from.insert(found->second.from.begin(), found->second.from.end());
    }
    if (!common) return;
    if (isMixed || !mayTurn(operation, *common)) return refuse(*common);
    if (operation.found.operation == "Reshape") common->isFlat = !common->isFlat;
    for (const std::string& tensor : outputsOf(operation.found, operation.tensor)) m_turned[source(tensor)] = *common;
  }

  static bool isTokenPort(const FoundOperation& found, std::string_view port) {
    return found.operation != "DotProductAttention" || isTokenInput(port);
  }

  bool mayTurn(const ImportedOperation& operation, const TurnedTensor& turned) const {
    const FoundOperation& found = operation.found;
    if (found.operation == "DotProductAttention")
      return !turned.isFlat && found.attributes.value("qkv_format", "") == "sbhd";
    return found.operation == "Reshape" ? mayReshape(found, turned) : isByToken(found);
  }

  /// Both first axes become one, or are two again.
  bool mayReshape(const FoundOperation& found, const TurnedTensor& turned) const {
    const Json shape = found.attributes.value("shape", Json::array());
    const std::vector<std::string> before = extentsOf(turned.from.empty() ? "" : *turned.from.begin());
    if (shape.size() != (turned.isFlat ? 3U : 2U) || before.size() != 3) return false;
    if (!turned.isFlat) return extentsOf(found.inputs.front().second).size() == 3;
    return textOf(shape[0]) == before[0] && textOf(shape[1]) == before[1];
  }

  static std::string textOf(const Json& extent) {
    return extent.is_string() ? extent.get<std::string>() : extent.dump();
  }

  /// Empty: not known.
  std::vector<std::string> extentsOf(const std::string& tensor) const {
    const ::onnx::TypeProto::Tensor* const type = m_graph.reading.type(tensor);
    std::vector<std::string> extents;
    if (type)
      for (const auto& dim : type->shape().dim())
        extents.push_back(dim.has_dim_param() ? dim.dim_param() : std::to_string(dim.dim_value()));
    return extents;
  }

  void apply() {
    std::map<std::string, std::string> before;  // by the output of a transpose
    for (const LeftOutNode* transpose : m_transposes)
      if (m_turned.contains(out(*transpose)) || m_ends.contains(out(*transpose)))
        before[out(*transpose)] = in(*transpose);
    for (ImportedOperation& each : m_graph.operations) {
      const bool isTurned = m_turned.contains(source(outputsOf(each.found, each.tensor).front()));
      if (isTurned) turnAttributes(each.found);
      for (auto& [port, tensor] : each.found.inputs)
        for (auto found = before.find(source(tensor)); found != before.end(); found = before.find(source(tensor)))
          tensor = found->second;
    }
    std::erase_if(m_graph.leftOut,
                  [&](const LeftOutNode& left) { return isTokenTranspose(*left.node) && before.contains(out(left)); });
  }

  static void turnAttributes(FoundOperation& found) {
    if (found.operation == "DotProductAttention") found.attributes["qkv_format"] = "bshd";
    if (found.operation != "Reshape" || found.attributes["shape"].size() != 3) return;
    std::swap(found.attributes["shape"][0], found.attributes["shape"][1]);
  }

  FoundGraph& m_graph;
  std::vector<const LeftOutNode*> m_transposes;  // in execution order
  std::set<std::string> m_readByOthers;
  std::set<std::string> m_never;  // outputs of transposes whose layers stay as they are
  // Of one walk.
  std::map<std::string, TurnedTensor> m_turned;  // by tensor
  std::set<std::string> m_ends;                  // outputs of transposes at the end of layers
  std::set<std::string> m_refused;
};

}  // namespace

void turnTokens(FoundGraph& graph) { TurningTokens(graph).run(); }

}  // namespace fuseline
