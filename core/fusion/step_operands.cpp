// Derives operands from the graph's wires, and finds outputs that are views.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/step_operands.h"

#include "core/graph/row_attributes.h"
#include "core/ops/attention_form.h"
#include "core/ops/grouped_form.h"
#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"

#include <algorithm>
#include <map>
#include <optional>

namespace fuseline {

namespace {

/// The ops of an entry are in the order of the graph.
int memberOf(std::span<const NodeId> nodes, NodeId id) {
  const auto found = std::ranges::lower_bound(nodes, id);
  return found == nodes.end() || *found != id ? -1 : static_cast<int>(found - nodes.begin());
}

/// Does the value have consumers outside of the entry's own nodes?
bool isReadOutside(const Value& value, std::span<const NodeId> nodes) {
  return value.isOutput ||
         std::ranges::any_of(value.uses, [&](const Use& use) { return memberOf(nodes, use.node) < 0; });
}

/// Does a gradient of the value arrive from outside the entry? Counts, such as the numbers of experts, have none.
bool hasOutsideGradient(const Graph& graph, const Value& value, std::span<const NodeId> nodes) {
  if (!isFloat(value.spec.dtype)) return false;
  return value.isOutput || std::ranges::any_of(value.uses, [&](const Use& use) {
           return memberOf(nodes, use.node) < 0 &&
                  graph.node(use.node).needs.inputs[static_cast<std::size_t>(use.slot)];
         });
}

SortedSet<OperandKey> keysOf(const std::vector<OperandUse>& operands) {
  SortedSet<OperandKey> keys;
  for (const OperandUse& use : operands) keys.insert(use.key);
  return keys;
}

bool isElementwise(const Graph& graph, NodeId id) { return graph.node(id).operation->isElementwise(); }

const TensorSpec& specOf(const Graph& graph, std::span<const NodeId> nodes, const OperandKey& key) {
  return graph.spec(nodes[static_cast<std::size_t>(key.member)], key.kind, key.slot);
}

/// Finds stores that only repeat a tensor which exists anyway: a loaded one, or one stored before.
class ViewFinder {
 public:
  ViewFinder(const Graph& graph, std::span<const NodeId> nodes, const SortedSet<OperandKey>& present)
      : m_graph(graph), m_nodes(nodes), m_present(present) {}

  std::vector<ViewOperand> find(const ElementwiseProgram& program) {
    std::vector<ViewOperand> views;
    for (const Store& store : program.stores) {
      if (store.place.lanes != 1) continue;
      const auto source = sourceOf(program, store);
      if (source && hasSameSpec(*source, store.place.operand))
        views.push_back({store.place.operand, *source});
      else
        m_firstStore.try_emplace(store.value, store.place.operand);
    }
    return views;
  }

 private:
  std::optional<OperandKey> sourceOf(const ElementwiseProgram& program, const Store& store) const {
    const Instruction& instruction = program.code[static_cast<std::size_t>(store.value)];
    const bool isPlainLoad = instruction.opcode == Opcode::Load && instruction.place.access == Access::Full &&
                             instruction.place.lanes == 1 && m_present.contains(instruction.place.operand);
    if (isPlainLoad) return instruction.place.operand;
    const auto stored = m_firstStore.find(store.value);
    return stored == m_firstStore.end() ? std::nullopt : std::optional(stored->second);
  }

  bool hasSameSpec(const OperandKey& a, const OperandKey& b) const {
    return specOf(m_graph, m_nodes, a) == specOf(m_graph, m_nodes, b);
  }

  const Graph& m_graph;
  std::span<const NodeId> m_nodes;
  const SortedSet<OperandKey>& m_present;
  std::map<ValueIndex, OperandKey> m_firstStore;
};

/// Reads that the program of an all-elementwise entry does not load are dropped.
void dropUnreadOperands(const ElementwiseProgram& program, std::vector<OperandUse>& operands) {
  std::vector<OperandKey> loaded;
  for (const Instruction& instruction : program.code)
    if (instruction.opcode == Opcode::Load) loaded.push_back(instruction.place.operand);
  std::ranges::sort(loaded);
  std::erase_if(operands, [&](const OperandUse& use) {
    return use.access == OperandAccess::Read && !std::ranges::binary_search(loaded, use.key);
  });
}

/// An op that is a view by its definition: it reads and writes nothing.
EntryOperands viewOf(Phase phase) {
  if (phase == Phase::Forward) return {.views = {{{0, OperandKind::Output, 0}, {0, OperandKind::Input, 0}}}};
  return {.views = {{{0, OperandKind::GradInput, 0}, {0, OperandKind::GradOutput, 0}}}};
}

bool isViewIn(const Node& node, Phase phase) {
  if (const auto& communication = node.operation->communication)
    return !(phase == Phase::Forward ? communication->forward : communication->backward);
  const TensorType passedOn = phase == Phase::Forward ? TensorType::Input : TensorType::GradOutput;
  return node.operation->isView && !passesOnQuantized(node, passedOn);
}

/// The parameter that an output is: the one with its name; -1: it is none.
int parameterOfOutput(const FusibleOperation& operation, const OperandKey& key) {
  if (key.kind != OperandKind::Output) return -1;
  const std::string& name = operation.outputs[static_cast<std::size_t>(key.slot)].name;
  const auto found = std::ranges::find(operation.parameters, name, &ParameterSpec::name);
  return found == operation.parameters.end() ? -1 : static_cast<int>(found - operation.parameters.begin());
}

/// Moves outputs that are parameters of their op to the views: nothing is copied.
EntryOperands withParameterViews(const Graph& graph, const FusedOperation& entry, std::vector<OperandUse> operands) {
  EntryOperands result;
  for (const OperandUse& use : operands) {
    const Node& node = graph.node(entry.nodes[static_cast<std::size_t>(use.key.member)]);
    const int parameter = parameterOfOutput(*node.operation, use.key);
    if (parameter < 0)
      result.operands.push_back(use);
    else
      result.views.push_back({use.key, {use.key.member, OperandKind::Parameter, parameter}});
  }
  return result;
}

EntryOperands withViews(const Graph& graph, const FusedOperation& entry, Phase phase,
                        std::vector<OperandUse> operands) {
  if (!entry.isFused() && isViewIn(graph.node(entry.nodes.front()), phase)) return viewOf(phase);
  const auto isOne = [&](NodeId id) { return isElementwise(graph, id); };
  EntryOperands result = withParameterViews(graph, entry, std::move(operands));
  if (std::ranges::none_of(entry.nodes, isOne)) return result;
  const auto numMembers = static_cast<int>(entry.nodes.size());
  const SortedSet<OperandKey> present = keysOf(result.operands);
  const ElementwiseProgram program = composeMembers(graph, entry.nodes, phase, present, 0, numMembers);
  std::ranges::move(ViewFinder(graph, entry.nodes, present).find(program), std::back_inserter(result.views));
  std::erase_if(result.operands, [&](const OperandUse& use) {
    return std::ranges::any_of(result.views, [&](const ViewOperand& view) { return view.view == use.key; });
  });
  if (!std::ranges::all_of(entry.nodes, isOne)) return result;
  if (result.views.empty())
    dropUnreadOperands(program, result.operands);
  else
    dropUnreadOperands(composeMembers(graph, entry.nodes, phase, keysOf(result.operands), 0, numMembers),
                       result.operands);
  return result;
}

void appendForward(const Graph& graph, const FusedOperation& entry, int member, const SavedSet& saved,
                   std::vector<OperandUse>& operands) {
  const NodeId id = entry.nodes[static_cast<std::size_t>(member)];
  const Node& node = graph.node(id);
  const auto add = [&](OperandKind kind, std::size_t slot, OperandAccess access) {
    operands.push_back({.key = {member, kind, static_cast<int>(slot)}, .access = access});
  };
  for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
    if (memberOf(entry.nodes, graph.value(node.inputs[slot]).producer) < 0)
      add(OperandKind::Input, slot, OperandAccess::Read);
  for (std::size_t slot = 0; slot < node.parameters.size(); ++slot)
    add(OperandKind::Parameter, slot, OperandAccess::Read);
  for (std::size_t slot = 0; slot < node.outputs.size(); ++slot)
    if (isReadOutside(graph.value(node.outputs[slot]), entry.nodes) || saved.values.contains(node.outputs[slot]))
      add(OperandKind::Output, slot, OperandAccess::Write);
  for (std::size_t slot = 0; slot < node.residuals.size(); ++slot)
    if (saved.residuals.contains({id, static_cast<int>(slot)})) add(OperandKind::Residual, slot, OperandAccess::Write);
}

/// A member that computes no gradient reads nothing either.
void appendBackward(const Graph& graph, const FusedOperation& entry, int member, const GradientNeeds& needs,
                    std::vector<OperandUse>& operands) {
  if (!needs.anyInput() && !needs.anyParameter()) return;
  const Node& node = graph.node(entry.nodes[static_cast<std::size_t>(member)]);
  const auto add = [&](OperandKind kind, std::size_t slot, OperandAccess access) {
    operands.push_back({.key = {member, kind, static_cast<int>(slot)}, .access = access});
  };
  for (std::size_t slot = 0; slot < node.outputs.size(); ++slot)
    if (hasOutsideGradient(graph, graph.value(node.outputs[slot]), entry.nodes))
      add(OperandKind::GradOutput, slot, OperandAccess::Read);
  for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
    if (needs.inputs[slot] && memberOf(entry.nodes, graph.value(node.inputs[slot]).producer) < 0)
      add(OperandKind::GradInput, slot, OperandAccess::Write);
  for (std::size_t slot = 0; slot < node.parameters.size(); ++slot)
    if (needs.parameters[slot])
      add(OperandKind::GradParameter, slot,
          node.gradientSink(static_cast<int>(slot)) == GradientSink::Accumulate ? OperandAccess::Accumulate
                                                                                : OperandAccess::Write);
}

}  // namespace

bool EntryOperands::isView() const {
  return std::ranges::none_of(operands, [](const OperandUse& use) { return use.access != OperandAccess::Read; });
}

int numWeights(const Node& node) {
  if (node.parameters.empty() || !node.operation->isQuantizable) return 0;
  return isGrouped(node.attributes) ? groupedForm(node.attributes).weights.numSlots : 1;
}

namespace {

/// x, k and v by their slots, and the gradient of y.
std::optional<GemmOperand> attentionOperand(NodeId id, const OperandKey& key) {
  if (key.kind == OperandKind::GradOutput) return GemmOperand{id, TensorType::GradOutput};
  if (key.kind != OperandKind::Input || key.slot > AttentionForm::kValue) return std::nullopt;
  return GemmOperand{id, TensorType::Input, key.slot};
}

}  // namespace

std::optional<GemmOperand> gemmOperand(const Graph& graph, const FusedOperation& entry, const OperandKey& key) {
  const bool isLastGradient = key.kind == OperandKind::GradOutput && entry.isFused() &&
                              entry.rule->readsLastGradientInGemms &&
                              key.member + 1 == static_cast<int>(entry.nodes.size());
  const NodeId id = entry.nodes[static_cast<std::size_t>(isLastGradient ? 0 : key.member)];
  if (isQuantizedAttention(graph.node(id))) return attentionOperand(id, key);
  if (!graph.node(id).operation->isQuantizable) return std::nullopt;
  if (key.kind == OperandKind::Parameter && key.slot < numWeights(graph.node(id)))
    return GemmOperand{id, TensorType::Weight, key.slot};
  if (key.slot != 0) return std::nullopt;
  switch (key.kind) {
    case OperandKind::Input: return GemmOperand{id, TensorType::Input};
    case OperandKind::GradOutput: return GemmOperand{id, TensorType::GradOutput};
    default: return std::nullopt;
  }
}

std::vector<MemberTensor> savedReads(const Graph& graph, const FusedOperation& entry) {
  if (entry.isFused() && entry.rule->saves) {
    Match match{graph, *entry.rule, entry.nodes, {}};
    return entry.rule->saves(match);
  }
  std::vector<MemberTensor> reads;
  for (std::size_t member = 0; member < entry.nodes.size(); ++member)
    for (const SavedTensor& tensor : graph.node(entry.nodes[member]).context.tensors)
      reads.push_back({static_cast<int>(member), tensor});
  return reads;
}

SavedSet savedTensors(const Graph& graph, std::span<const FusedOperation> backward) {
  SavedSet saved;
  for (const FusedOperation& entry : backward) {
    for (const MemberTensor& read : savedReads(graph, entry)) {
      const NodeId id = entry.nodes[static_cast<std::size_t>(read.member)];
      const auto slot = static_cast<std::size_t>(read.tensor.slot);
      if (read.tensor.kind == OperandKind::Input) saved.values.insert(graph.node(id).inputs[slot]);
      if (read.tensor.kind == OperandKind::Output) saved.values.insert(graph.node(id).outputs[slot]);
      if (read.tensor.kind == OperandKind::Residual) saved.residuals.insert({id, read.tensor.slot});
    }
  }
  return saved;
}

EntryOperands forwardOperands(const Graph& graph, const FusedOperation& entry, const SavedSet& saved) {
  std::vector<OperandUse> operands;
  for (std::size_t member = 0; member < entry.nodes.size(); ++member)
    appendForward(graph, entry, static_cast<int>(member), saved, operands);
  return withViews(graph, entry, Phase::Forward, std::move(operands));
}

EntryOperands backwardOperands(const Graph& graph, const FusedOperation& entry) {
  std::vector<OperandUse> operands;
  for (const MemberTensor& read : savedReads(graph, entry))
    operands.push_back({.key = {read.member, read.tensor.kind, read.tensor.slot}});
  for (std::size_t member = 0; member < entry.nodes.size(); ++member)
    appendBackward(graph, entry, static_cast<int>(member), graph.node(entry.nodes[member]).needs, operands);
  return withViews(graph, entry, Phase::Backward, std::move(operands));
}

BackwardShare shareOf(const Graph& graph, NodeId id, GradientNeeds needs) {
  const Node& node = graph.node(id);
  const std::vector<TensorSpec> inputs = graph.inputSpecs(id);
  OperationContext context = node.operation->saveContext({node.attributes, inputs, needs});
  return {.needs = std::move(needs), .context = std::move(context)};
}

EntryOperands backwardOperands(const Graph& graph, NodeId id, const BackwardShare& share) {
  const FusedOperation entry{.nodes = {id}};
  std::vector<OperandUse> operands;
  for (const SavedTensor& tensor : share.context.tensors) operands.push_back({.key = {0, tensor.kind, tensor.slot}});
  appendBackward(graph, entry, 0, share.needs, operands);
  return withViews(graph, entry, Phase::Backward, std::move(operands));
}

std::int64_t trafficBytes(const Graph& graph, const FusedOperation& entry, const EntryOperands& operands) {
  if (operands.isView()) return 0;
  std::int64_t bytes = 0;
  SortedSet<ValueId> readValues;
  for (const OperandUse& use : operands.operands) {
    const Node& node = graph.node(entry.nodes[static_cast<std::size_t>(use.key.member)]);
    const bool isInput = use.key.kind == OperandKind::Input;
    if (isInput) {
      const ValueId value = node.inputs[static_cast<std::size_t>(use.key.slot)];
      if (readValues.contains(value)) continue;
      readValues.insert(value);
    }
    bytes += specOf(graph, entry.nodes, use.key).bytes() * (use.access == OperandAccess::Accumulate ? 2 : 1);
  }
  return bytes;
}

namespace {

void linkForward(const Graph& graph, std::span<const NodeId> nodes, int member, ElementwiseComposer& composer) {
  const Node& node = graph.node(nodes[static_cast<std::size_t>(member)]);
  for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
    const Value& value = graph.value(node.inputs[slot]);
    const int producer = memberOf(nodes, value.producer);
    if (producer >= 0)
      composer.link({member, OperandKind::Input, static_cast<int>(slot)}, {producer, OperandKind::Output, value.port});
  }
}

/// The gradient of an output that one member alone reads is that member's input gradient.
void linkBackward(const Graph& graph, std::span<const NodeId> nodes, int member, const SortedSet<OperandKey>& present,
                  ElementwiseComposer& composer) {
  const Node& node = graph.node(nodes[static_cast<std::size_t>(member)]);
  for (std::size_t slot = 0; slot < node.outputs.size(); ++slot) {
    const OperandKey key{member, OperandKind::GradOutput, static_cast<int>(slot)};
    if (present.contains(key)) continue;
    const Value& value = graph.value(node.outputs[slot]);
    const int reader = value.uses.size() == 1 ? memberOf(nodes, value.uses.front().node) : -1;
    if (reader >= 0)
      composer.link(key, {reader, OperandKind::GradInput, value.uses.front().slot});
    else
      composer.setAbsent(key);
  }
}

void markInternal(const Node& node, int member, Phase phase, const SortedSet<OperandKey>& present,
                  ElementwiseComposer& composer) {
  const auto mark = [&](OperandKind kind, std::size_t count) {
    for (int slot = 0; slot < static_cast<int>(count); ++slot)
      if (!present.contains({member, kind, slot})) composer.setInternal({member, kind, slot});
  };
  if (phase == Phase::Forward) return mark(OperandKind::Output, node.outputs.size());
  mark(OperandKind::GradInput, node.inputs.size());
  mark(OperandKind::GradParameter, node.parameters.size());
}

/// For each member the first gated op after it; nullptr if there is none.
std::vector<const Node*> gatedBehind(const Graph& graph, std::span<const NodeId> nodes, int last) {
  std::vector<const Node*> gated(static_cast<std::size_t>(last), nullptr);
  for (std::size_t member = gated.size(); member-- > 1;) {
    const Node& node = graph.node(nodes[member]);
    gated[member - 1] = node.operation->elementwise.isGated ? &node : gated[member];
  }
  return gated;
}

}  // namespace

ElementwiseProgram composeMembers(const Graph& graph, std::span<const NodeId> nodes, Phase phase,
                                  const SortedSet<OperandKey>& present, int first, int last, std::int64_t firstRow) {
  ElementwiseComposer composer;
  const bool isBackward = phase == Phase::Backward;
  for (int member = 0; member < static_cast<int>(nodes.size()); ++member) {
    if (isBackward)
      linkBackward(graph, nodes, member, present, composer);
    else
      linkForward(graph, nodes, member, composer);
    markInternal(graph.node(nodes[static_cast<std::size_t>(member)]), member, phase, present, composer);
  }
  const std::vector<const Node*> gatedBehindMember = gatedBehind(graph, nodes, last);
  for (int i = first; i < last; ++i) {
    const int member = isBackward ? last - 1 - (i - first) : i;
    const Node& node = graph.node(nodes[static_cast<std::size_t>(member)]);
    if (!node.operation->isElementwise()) continue;
    // Ops before a gated op work on tensors twice as wide as the grid.
    const Node* const gated = gatedBehindMember[static_cast<std::size_t>(member)];
    std::optional<Attributes> later;
    if (firstRow > 0) later = attributesFromRow(graph, nodes[static_cast<std::size_t>(member)], firstRow);
    composer.append(member, node.operation->elementwise, later ? *later : node.attributes, isBackward, gated ? 2 : 1,
                    gated ? gated->operation->elementwise.interleaveFor(gated->attributes) : 0);
  }
  return composer.finish();
}

}  // namespace fuseline
