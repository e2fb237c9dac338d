// Matches nodes by their ids, and values by the nodes that produce them.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph_match.h"

#include "core/support/to_index.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fuseline {

namespace {

bool isSame(const GradientNeeds& a, const GradientNeeds& b) {
  return a.inputs == b.inputs && a.parameters == b.parameters;
}

bool isSame(const OperationContext& a, const OperationContext& b) {
  return a.tensors == b.tensors && a.state == b.state;
}

/// Whatever its tensors are, and its attributes.
bool isSameOperation(const Node& a, const Node& b) {
  return a.id == b.id && a.owner == b.owner && a.path == b.path && a.block == b.block && a.sequential == b.sequential &&
         a.operation->name == b.operation->name && a.parameters == b.parameters &&
         a.parameterGradients == b.parameterGradients && a.residuals == b.residuals && isSame(a.needs, b.needs) &&
         isSame(a.context, b.context) && a.quantizers == b.quantizers &&
         a.hasPartialGradients == b.hasPartialGradients && a.hasShardedParameters == b.hasShardedParameters &&
         a.hasFrozenParameters == b.hasFrozenParameters;
}

bool isSameButForAttributes(const Node& a, const Node& b) {
  return isSameOperation(a, b) && a.inputs == b.inputs && a.outputs == b.outputs;
}

/// Its consumers follow from the nodes.
bool isSame(const Value& a, const Value& b) {
  return a.name == b.name && a.spec == b.spec && a.producer == b.producer && a.port == b.port &&
         a.isOutput == b.isOutput && a.needsGradient == b.needsGradient;
}

bool isSame(const GraphOutput& a, const GraphOutput& b) { return a.name == b.name && a.value == b.value; }

bool isSame(const Sequential& a, const Sequential& b) {
  return a.path == b.path && a.block == b.block && a.parent == b.parent;
}

template <class Item>
bool areSame(const std::vector<Item>& a, const std::vector<Item>& b) {
  return std::ranges::equal(a, b, [](const Item& one, const Item& other) { return isSame(one, other); });
}

bool haveSameSettings(const Graph& a, const Graph& b) {
  return a.pass() == b.pass() && a.delayedScaling() == b.delayedScaling() && a.optimizer() == b.optimizer() &&
         areSame(a.sequentials(), b.sequentials());
}

class Matcher {
 public:
  Matcher(const Graph& earlier, const Graph& later) : m_earlier(earlier), m_later(later) {}

  std::optional<GraphMatch> match() && {
    if (!matchNodes()) return std::nullopt;
    matchValues();
    for (NodeId id = 0; id < static_cast<NodeId>(m_later.nodes().size()); ++id) {
      const NodeId before = m_match.earlierOf[toIndex(id)];
      if (before >= 0 && isSame(before, id)) continue;
      m_match.changedLater.push_back(id);
      if (before >= 0) m_match.changedEarlier.push_back(before);
    }
    for (NodeId id = 0; id < static_cast<NodeId>(m_earlier.nodes().size()); ++id)
      if (m_match.laterOf[toIndex(id)] < 0) m_match.changedEarlier.push_back(id);
    return std::move(m_match);
  }

 private:
  /// False: common nodes are in another order.
  bool matchNodes() {
    std::unordered_map<std::string_view, NodeId> byId;
    byId.reserve(m_earlier.nodes().size());
    for (const Node& node : m_earlier.nodes()) byId.emplace(node.id, static_cast<NodeId>(byId.size()));
    m_match.laterOf.assign(m_earlier.nodes().size(), -1);
    m_match.earlierOf.assign(m_later.nodes().size(), -1);
    NodeId last = -1;
    for (NodeId id = 0; id < static_cast<NodeId>(m_later.nodes().size()); ++id) {
      const auto before = byId.find(m_later.node(id).id);
      if (before == byId.end()) continue;
      if (before->second <= last) return false;
      last = before->second;
      m_match.laterOf[toIndex(last)] = id;
      m_match.earlierOf[toIndex(id)] = last;
    }
    return true;
  }

  void matchValues() {
    m_sameValue.assign(m_later.values().size(), -1);
    std::unordered_map<std::string_view, ValueId> inputs;
    for (const ValueId id : m_earlier.inputs()) inputs.emplace(m_earlier.value(id).name, id);
    for (ValueId id = 0; id < static_cast<ValueId>(m_later.values().size()); ++id) {
      const ValueId before = valueBefore(m_later.value(id), inputs);
      if (before >= 0 && isSameValue(m_earlier.value(before), m_later.value(id))) m_sameValue[toIndex(id)] = before;
    }
  }

  ValueId valueBefore(const Value& value, const std::unordered_map<std::string_view, ValueId>& inputs) const {
    if (value.producer < 0) {
      const auto input = inputs.find(value.name);
      return input == inputs.end() ? -1 : input->second;
    }
    const NodeId producer = m_match.earlierOf[toIndex(value.producer)];
    if (producer < 0) return -1;
    const std::vector<ValueId>& outputs = m_earlier.node(producer).outputs;
    return toIndex(value.port) < outputs.size() ? outputs[toIndex(value.port)] : -1;
  }

  bool isSameValue(const Value& before, const Value& after) const {
    return before.name == after.name && before.spec == after.spec && before.port == after.port &&
           before.isOutput == after.isOutput && before.needsGradient == after.needsGradient &&
           std::ranges::equal(before.uses, after.uses, [this](const Use& a, const Use& b) {
             return m_match.laterOf[toIndex(a.node)] == b.node && a.slot == b.slot;
           });
  }

  bool isSame(NodeId before, NodeId after) const {
    const Node& a = m_earlier.node(before);
    const Node& b = m_later.node(after);
    const auto areSame = [this](const std::vector<ValueId>& earlier, const std::vector<ValueId>& later) {
      return std::ranges::equal(earlier, later,
                                [this](ValueId one, ValueId other) { return m_sameValue[toIndex(other)] == one; });
    };
    return isSameOperation(a, b) && a.attributes == b.attributes && areSame(a.inputs, b.inputs) &&
           areSame(a.outputs, b.outputs);
  }

  const Graph& m_earlier;
  const Graph& m_later;
  GraphMatch m_match;
  std::vector<ValueId> m_sameValue;  // by value of the later graph: the same in the earlier one, or -1
};

}  // namespace

std::optional<GraphMatch> matchGraphs(const Graph& earlier, const Graph& later) {
  if (!haveSameSettings(earlier, later)) return std::nullopt;
  return Matcher(earlier, later).match();
}

std::optional<std::vector<NodeId>> changedAttributes(const Graph& before, const Graph& after) {
  const bool isSameFrame = haveSameSettings(before, after) && before.inputs() == after.inputs() &&
                           areSame(before.outputs(), after.outputs()) && areSame(before.values(), after.values()) &&
                           std::ranges::equal(before.nodes(), after.nodes(), isSameButForAttributes);
  if (!isSameFrame) return std::nullopt;
  std::vector<NodeId> changed;
  for (NodeId id = 0; id < static_cast<NodeId>(after.nodes().size()); ++id)
    if (before.node(id).attributes != after.node(id).attributes) changed.push_back(id);
  return changed;
}

}  // namespace fuseline
