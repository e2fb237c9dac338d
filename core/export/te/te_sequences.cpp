// Takes units of ops, fused or single, once they can run, and appends each to the sequence that it continues.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_sequences.h"

#include "core/export/te/te_attention.h"
#include "core/ops/catalog.h"
#include "core/ops/shared_attributes.h"
#include "core/quant/apply_recipe.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

namespace fuseline {

namespace {

using Unit = std::vector<NodeId>;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Joins the nodes of an entry of either list, and entries with common nodes.
class Units {
 public:
  explicit Units(std::size_t numNodes) : m_parents(numNodes) { std::iota(m_parents.begin(), m_parents.end(), 0); }

  void join(const std::vector<FusedOperation>& entries) {
    for (const FusedOperation& entry : entries)
      for (const NodeId node : entry.nodes) m_parents[at(rootOf(node))] = rootOf(entry.nodes.front());
  }

  /// In the order of their first nodes.
  std::vector<Unit> list() {
    std::vector<Unit> byRoot(m_parents.size());
    for (NodeId node = 0; at(node) < m_parents.size(); ++node) byRoot[at(rootOf(node))].push_back(node);
    std::erase_if(byRoot, [](const Unit& unit) { return unit.empty(); });
    std::ranges::sort(byRoot, {}, [](const Unit& unit) { return unit.front(); });
    return byRoot;
  }

 private:
  NodeId rootOf(NodeId node) const {
    while (m_parents[at(node)] != node) node = m_parents[at(node)];
    return node;
  }
  std::vector<NodeId> m_parents;
};

bool contains(const std::vector<NodeId>& nodes, NodeId node) { return std::ranges::find(nodes, node) != nodes.end(); }

ValueId mainOutput(const Graph& graph, NodeId node) { return graph.node(node).outputs[0]; }

/// Within a chain, only the next op may read an op's output.
bool goesOn(const Graph& graph, NodeId from, NodeId to) {
  const ValueId value = mainOutput(graph, from);
  const bool isOneWire = graph.value(value).uses.size() == 1 && !graph.value(value).isOutput;
  return isOneWire && graph.node(to).inputs[0] == value && graph.node(from).sequential == graph.node(to).sequential;
}

bool isLinear(const Node& node) { return node.operation->name == "BasicLinear"; }

bool isChain(const Graph& graph, const Unit& unit) {
  for (std::size_t i = 1; i < unit.size(); ++i)
    if (!goesOn(graph, unit[i - 1], unit[i])) return false;
  return std::ranges::all_of(unit, [&](NodeId node) { return isTeOperation(graph.node(node)); });
}

class SequenceBuilder {
 public:
  SequenceBuilder(const Graph& graph, const std::vector<ModuleBetween>& between, const Recipe* recipe)
      : m_graph(graph), m_makers(graph, between), m_recipe(recipe), m_sequenceOf(graph.nodes().size(), -1) {}

  bool isReady(const Unit& unit) const {
    return std::ranges::all_of(unit, [&](NodeId node) {
      return std::ranges::all_of(m_graph.node(node).inputs, [&](ValueId value) {
        const bool isInput = m_graph.value(value).producer < 0;
        return std::ranges::all_of(m_makers.of(value), [&](NodeId maker) {
          return m_sequenceOf[at(maker)] >= 0 || (!isInput && contains(unit, maker));
        });
      });
    });
  }

  /// The sequence that the unit would continue; nothing if it begins one.
  std::optional<int> continued(const Unit& unit) const {
    const NodeId producer = m_graph.value(m_graph.node(unit.front()).inputs[0]).producer;
    if (producer < 0 || !isTeOperation(m_graph.node(unit.front()))) return std::nullopt;
    const int sequence = m_sequenceOf[at(producer)];
    const TeSequence& found = m_sequences[at(sequence)];
    const bool fits = found.isTe && found.nodes.back() == producer && goesOn(m_graph, producer, unit.front()) &&
                      !writesQuantized(m_graph, producer, unit.front(), m_recipe);
    return fits && extrasStandBefore(unit, sequence) ? std::optional(sequence) : std::nullopt;
  }

  void place(const Unit& unit) {
    int sequence = continued(unit).value_or(static_cast<int>(m_sequences.size()));
    if (at(sequence) == m_sequences.size()) m_sequences.push_back({.isTe = isTeOperation(m_graph.node(unit.front()))});
    for (const NodeId node : unit) {
      m_sequences[at(sequence)].nodes.push_back(node);
      m_sequenceOf[at(node)] = sequence;
    }
  }

  std::vector<TeSequence> finish() && {
    for (TeSequence& sequence : m_sequences) addEnds(sequence);
    return std::move(m_sequences);
  }

 private:
  /// Extra inputs come from the caller, from earlier sequences, or through a channel.
  bool extrasStandBefore(const Unit& unit, int sequence) const {
    return std::ranges::all_of(unit, [&](NodeId node) {
      const auto& inputs = m_graph.node(node).inputs;
      return std::all_of(inputs.begin() + 1, inputs.end(), [&](ValueId value) {
        const Value& extra = m_graph.value(value);
        if (extra.producer < 0) return isMadeBefore(value, sequence);
        if (contains(unit, extra.producer)) return true;
        const int source = m_sequenceOf[at(extra.producer)];
        return source < sequence || (source == sequence && extra.port > 0);
      });
    });
  }

  bool isMadeBefore(ValueId input, int sequence) const {
    return std::ranges::all_of(m_makers.of(input), [&](NodeId maker) { return m_sequenceOf[at(maker)] < sequence; });
  }

  void addEnds(TeSequence& sequence) const {
    sequence.input = m_graph.node(sequence.nodes.front()).inputs[0];
    sequence.output = mainOutput(m_graph, sequence.nodes.back());
    for (const NodeId id : sequence.nodes) {
      const Node& node = m_graph.node(id);
      for (std::size_t slot = 1; slot < node.inputs.size(); ++slot)
        if (!contains(sequence.nodes, m_graph.value(node.inputs[slot]).producer))
          sequence.extraInputs.push_back(node.inputs[slot]);
      for (std::size_t slot = 1; slot < node.outputs.size(); ++slot)
        if (isReturned(m_graph, sequence, node.outputs[slot])) sequence.extraOutputs.push_back(node.outputs[slot]);
    }
  }

  const Graph& m_graph;
  Makers m_makers;
  const Recipe* m_recipe;
  std::vector<int> m_sequenceOf;  // of a node; -1: none yet
  std::vector<TeSequence> m_sequences;
};

/// Units that continue the last sequence go first, so that a chain is not cut by a unit that could follow it.
std::optional<std::size_t> nextUnit(const SequenceBuilder& builder, const std::vector<Unit>& waiting) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (!builder.isReady(waiting[i])) continue;
    if (builder.continued(waiting[i])) return i;
    if (!first) first = i;
  }
  return first;
}

/// Units that wait for each other cannot all stay together: the first falls apart.
void breakUp(std::vector<Unit>& waiting) {
  const auto joined = std::ranges::find_if(waiting, [](const Unit& unit) { return unit.size() > 1; });
  const Unit unit = std::move(*joined);
  waiting.erase(joined);
  for (const NodeId node : unit) waiting.push_back({node});
  std::ranges::sort(waiting, {}, [](const Unit& one) { return one.front(); });
}

std::vector<Unit> unitsOf(const Graph& graph, const FusionReport& report) {
  Units joined(graph.nodes().size());
  joined.join(report.forward);
  joined.join(report.backward);
  std::vector<Unit> units;
  for (Unit& unit : joined.list())
    if (isChain(graph, unit))
      units.push_back(std::move(unit));
    else
      for (const NodeId node : unit) units.push_back({node});
  return units;
}

}  // namespace

Makers::Makers(const Graph& graph, const std::vector<ModuleBetween>& between) : m_graph(graph) {
  for (const ModuleBetween& module : between) {
    std::set<NodeId> makers;
    for (const ValueId input : module.inputs) {
      const std::vector<NodeId> before = of(input);
      makers.insert(before.begin(), before.end());
    }
    for (const ValueId output : module.outputs) m_beforeModules[output].assign(makers.begin(), makers.end());
  }
}

std::vector<NodeId> Makers::of(ValueId value) const {
  if (const NodeId producer = m_graph.value(value).producer; producer >= 0) return {producer};
  const auto found = m_beforeModules.find(value);
  return found == m_beforeModules.end() ? std::vector<NodeId>() : found->second;
}

bool isTeOperation(const Node& node) {
  constexpr std::string_view kOurs = "Formula";
  const std::string& name = node.operation->name;
  return name != kOurs && !isTeModule(node) && !isExactGelu(node.attributes) &&
         builtinOperations().find(name) != nullptr;
}

bool isChannel(const Graph& graph, const TeSequence& sequence, ValueId value) {
  const std::vector<Use>& uses = graph.value(value).uses;
  return graph.value(value).port > 0 &&
         std::ranges::any_of(uses, [&](const Use& use) { return use.slot > 0 && contains(sequence.nodes, use.node); });
}

namespace {

/// TransformerEngine's GEMMs produce quantized outputs of delayed scaling alone. It has quantizers for layers that do
/// not fit the recipe, too.
bool isRefusedByGemms(const Node& node, TensorType type, const Recipe* recipe) {
  const TensorQuantizers& quantizers = quantizersOf(node, type);
  const bool hasRecipe = recipe && recipe->name() != "None" && !recipe->definition().hasState;
  const bool isQuantized = quantizers.any() || node.quantizers.hasEverySlot || hasRecipe;
  return node.operation->isQuantizable && isQuantized && !quantizers.isDelayed();
}

/// Its activations take quantizers of one scaling, and none that does nothing.
bool isRefusedByKernels(const Node& node, TensorType type) {
  const TensorQuantizers& quantizers = quantizersOf(node, type);
  return node.quantizers.hasEverySlot && (!quantizers.any() || quantizers.rowwise != quantizers.columnwise);
}

}  // namespace

bool writesQuantized(const Graph& graph, NodeId from, NodeId to, const Recipe* recipe) {
  const Node& maker = graph.node(from);
  const Node& reader = graph.node(to);
  const NodeId before = graph.value(maker.inputs[0]).producer;
  const bool isOfGemm =
      isLinear(maker) || (maker.operation->name == "Bias" && before >= 0 && isLinear(graph.node(before)));
  const bool isGradientOfGemm = graph.pass() == ExecutionMode::Training && isLinear(reader);
  const bool isKernel = maker.operation->category == "Activation";
  const bool isGradientOfKernel = graph.pass() == ExecutionMode::Training && reader.operation->category == "Activation";
  return (isOfGemm && isRefusedByGemms(reader, TensorType::Input, recipe)) ||
         (isGradientOfGemm && isRefusedByGemms(maker, TensorType::GradOutput, recipe)) ||
         (isKernel && isRefusedByKernels(reader, TensorType::Input)) ||
         (isGradientOfKernel && isRefusedByKernels(maker, TensorType::GradOutput));
}

bool isReturned(const Graph& graph, const TeSequence& sequence, ValueId value) {
  const std::vector<Use>& uses = graph.value(value).uses;
  const auto isOutside = [&](const Use& use) { return use.slot == 0 || !contains(sequence.nodes, use.node); };
  return graph.value(value).isOutput || uses.empty() || std::ranges::any_of(uses, isOutside);
}

std::vector<TeSequence> teSequences(const Graph& graph, const FusionReport& report,
                                    const std::vector<ModuleBetween>& between, const Recipe* recipe) {
  std::vector<Unit> waiting = unitsOf(graph, report);
  SequenceBuilder builder(graph, between, recipe);
  while (!waiting.empty()) {
    const std::optional<std::size_t> next = nextUnit(builder, waiting);
    if (!next) {
      breakUp(waiting);
      continue;
    }
    builder.place(waiting[*next]);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(*next));
  }
  return std::move(builder).finish();
}

}  // namespace fuseline
