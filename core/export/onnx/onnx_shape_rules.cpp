// Finds the rule of a node by its operator.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_shape_rules.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include <fmt/format.h>

namespace fuseline {

namespace onnx_shapes {

void sameAsFirst(Node& node) { node.setShape(0, node.shape(0)); }

void allSameAsFirst(Node& node) {
  for (std::size_t output = 0; output < node.numOutputs(); ++output) node.setShape(output, node.shape(0));
}

OnnxExtents broadcastOf(const OnnxExtents& a, const OnnxExtents& b, OnnxFactSymbols& symbols) {
  const OnnxExtents &longer = a.size() < b.size() ? b : a, &shorter = a.size() < b.size() ? a : b;
  OnnxExtents result = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t axis = 0; axis < shorter.size(); ++axis)
    result[offset + axis] = symbols.broadcast(longer[offset + axis], shorter[axis]);
  return result;
}

void broadcastAll(Node& node) {
  MaybeExtents result = OnnxExtents{};
  for (std::size_t i = 0; i < node.numInputs() && result; ++i)
    result = node.shape(i) ? MaybeExtents(broadcastOf(*result, *node.shape(i), node.symbols())) : std::nullopt;
  node.setShape(0, std::move(result));
}

std::optional<std::set<std::size_t>> axesOf(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::set<std::size_t> found;
  for (const std::int64_t axis : axes) {
    const std::optional<std::size_t> each = axisOf(axis, rank);
    if (!each) return std::nullopt;
    found.insert(*each);
  }
  return found;
}

MaybeExtents extentsAt(const Node& node, std::size_t index, std::string_view attribute) {
  if (MaybeExtents wanted = node.list(index, attribute)) return wanted;
  if (node.rank(index) != 1) return std::nullopt;
  const std::optional<std::int64_t> rank = (*node.shape(index))[0].number();
  if (!rank || *rank < 0 || *rank > static_cast<std::int64_t>(kMaxRank)) return std::nullopt;
  return OnnxExtents(static_cast<std::size_t>(*rank), OnnxExtent::unknown());
}

namespace {

using RulesByType = std::map<std::string_view, void (*)(Node&), std::less<>>;

const RulesByType& rulesByType() {
  static const RulesByType kRules = [] {
    RulesByType rules;
    for (const auto table : {elementwiseShapes, productShapes, windowShapes, movementShapes, reductionShapes,
                             sourceShapes, sequenceShapes, quantizedShapes})
      for (const OnnxShapeRule& rule : table())
        for (std::string_view rest = rule.types; !rest.empty();) {
          const std::size_t length = std::min(rest.find(' '), rest.size());
          rules.emplace(rest.substr(0, length), rule.run);
          rest.remove_prefix(std::min(length + 1, rest.size()));
        }
    return rules;
  }();
  return kRules;
}

}  // namespace

}  // namespace onnx_shapes

void inferOnnxNode(OnnxNodeFacts& node) {
  if (node.outputs().empty()) return;
  const std::string &type = node.node().op_type(), &domain = node.node().domain();
  const bool isKnown = domain.empty() || domain == "ai.onnx" || domain.starts_with("com.microsoft");
  const auto& rules = onnx_shapes::rulesByType();
  auto rule = rules.find(fmt::format("{}:{}", domain, type));
  if (rule == rules.end()) rule = rules.find(type);
  if (!isKnown || rule == rules.end()) return;
  for (std::size_t output = 0; output < node.numOutputs(); ++output) node.setType(output, node.input(0).elementType);
  rule->second(node);
}

}  // namespace fuseline
