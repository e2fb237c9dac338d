// Walks from the outputs to the inputs; an op is written when all that it reads is.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/canonical_order.h"

#include "core/edit/edit_applier.h"
#include "core/lowering/document_operation.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace fuseline {

namespace {

/// Orders the ops of one pipeline or block.
class OpOrder {
 public:
  OpOrder(const PipelineDocument& document, const DocumentBlock& block) : m_block(block) {
    for (std::size_t i = block.ops.size(); i-- > 0;) m_indices[block.ops[i].id] = i;
    m_sources.resize(block.ops.size());
    for (const Wire& wire : block.wires) {
      const auto reader = m_indices.find(wire.to.node);
      const auto source = m_indices.find(wire.from.node);
      if (reader == m_indices.end() || source == m_indices.end()) continue;
      m_sources[reader->second].push_back({rankOf(document, wire.to), wire.to.port, source->second});
    }
    for (auto& sources : m_sources) std::ranges::sort(sources);
  }

  /// Indices of the ops. Each occurs once, in a cycle too.
  std::vector<std::size_t> order() {
    for (const DocumentOutput& output : m_block.outputs)
      if (const auto op = m_indices.find(output.from.node); op != m_indices.end()) visit(op->second);
    std::vector<std::size_t> rest(m_block.ops.size());
    std::iota(rest.begin(), rest.end(), std::size_t{0});
    std::ranges::stable_sort(rest, {}, [this](std::size_t i) { return m_block.ops[i].id; });
    for (const std::size_t op : rest) visit(op);
    return std::move(m_order);
  }

  /// Place of an input port among the ports of its op; behind them where the op does not declare it.
  std::size_t rankOf(const PipelineDocument& document, const Endpoint& to) const {
    const auto found = m_indices.find(to.node);
    if (found == m_indices.end()) return 0;
    const OperationPointer operation = operationOf(document, m_block.ops[found->second]);
    if (!operation) return 0;
    const auto port = std::ranges::find(operation->inputs, to.port, &Port::name);
    return static_cast<std::size_t>(port - operation->inputs.begin());
  }

 private:
  struct Step {
    std::size_t op = 0;
    std::size_t nextSource = 0;
  };

  /// Without recursion: a chain may have 100,000 ops.
  void visit(std::size_t root) {
    std::vector<Step> steps;
    const auto enter = [&](std::size_t op) {
      if (!m_isSeen[op]) steps.push_back({op});
      m_isSeen[op] = true;
    };
    enter(root);
    while (!steps.empty()) {
      Step& step = steps.back();
      const auto& sources = m_sources[step.op];
      if (step.nextSource < sources.size()) {
        enter(std::get<2>(sources[step.nextSource++]));
      } else {
        m_order.push_back(step.op);
        steps.pop_back();
      }
    }
  }

  const DocumentBlock& m_block;
  std::unordered_map<std::string_view, std::size_t> m_indices;  // the first op with the id
  std::vector<std::vector<std::tuple<std::size_t, std::string, std::size_t>>> m_sources;
  std::vector<std::size_t> m_order;
  std::vector<bool> m_isSeen = std::vector<bool>(m_block.ops.size());
};

/// Those that the op does not declare come last, by name.
void sortAttributes(const PipelineDocument& document, DocumentOp& op) {
  const OperationPointer operation = operationOf(document, op);
  if (!operation || !op.attributes.is_object()) return;
  const auto rank = [&](const std::string& name) {
    const auto spec = std::ranges::find(operation->attributes, name, &AttributeSpec::name);
    return spec - operation->attributes.begin();
  };
  std::vector<std::pair<std::string, Json>> members;
  for (const auto& [name, value] : op.attributes.items()) members.emplace_back(name, value);
  std::ranges::sort(members, {}, [&](const auto& member) { return std::pair(rank(member.first), member.first); });
  op.attributes = Json::object();
  for (auto& [name, value] : members) op.attributes[name] = std::move(value);
}

/// The place of each node in the file: inputs, ops, outputs.
std::unordered_map<std::string, std::size_t> placesOf(const DocumentBlock& block) {
  std::unordered_map<std::string, std::size_t> places;
  const auto add = [&](const auto& nodes) {
    for (const auto& node : nodes) places.emplace(node.id, places.size());
  };
  add(block.inputs);
  add(block.ops);
  add(block.outputs);
  return places;
}

void sortBlock(const PipelineDocument& document, DocumentBlock& block) {
  OpOrder order(document, block);
  std::vector<std::pair<std::size_t, Wire>> wires;
  for (const Wire& wire : block.wires) wires.emplace_back(order.rankOf(document, wire.to), wire);
  std::vector<DocumentOp> ops;
  for (const std::size_t op : order.order()) ops.push_back(block.ops[op]);
  block.ops = std::move(ops);
  for (DocumentOp& op : block.ops) sortAttributes(document, op);

  const std::unordered_map<std::string, std::size_t> places = placesOf(block);
  const auto placeOf = [&](const std::string& id) {
    const auto found = places.find(id);
    return found == places.end() ? places.size() : found->second;
  };
  std::ranges::stable_sort(wires, {}, [&](const auto& entry) {
    return std::tuple(placeOf(entry.second.to.node), entry.first, entry.second.to, entry.second.from);
  });
  std::ranges::transform(wires, block.wires.begin(), [](auto& entry) { return std::move(entry.second); });
  std::ranges::stable_sort(block.positions, {}, [&](const auto& entry) { return placeOf(entry.first); });
}

}  // namespace

PipelineDocument inCanonicalOrder(PipelineDocument document) {
  const PipelineDocument known = document;
  EditApplier::changeBlocks(document, [&](DocumentBlock& block) { sortBlock(known, block); });
  return document;
}

PipelineDocument documentToSave(const History& history) {
  return history.depth() == 0 ? history.document() : inCanonicalOrder(history.document());
}

}  // namespace fuseline
