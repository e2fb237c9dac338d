// Finds, for every quantized operand of a GEMM, the entry that makes it, and judges the pair.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fused_operands.h"

#include "core/fusion/sequential_border.h"
#include "core/fusion/step_operands.h"
#include "core/ops/attention_form.h"
#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// A value, or its gradient, that a linear op reads quantized.
struct Reading {
  GemmOperand operand;
  ValueId value = -1;
  bool isShared = false;  // it, or the tensor that it is a view of, has other consumers
};

/// Is it a GEMM of TransformerEngine's that takes the quantizer of its neighbor?
bool isProduct(const Graph& graph, const FusedOperation& entry) {
  if (entry.isFused())
    return entry.rule->name == "ForwardLinearBiasActivation" || entry.rule->name == "BackwardLinearScale";
  return graph.node(entry.nodes.front()).operation->name == "BasicLinear";
}

class FusedOperandPass {
 public:
  FusedOperandPass(const Graph& graph, const FusionOptions& options, Phase phase, FusionReport& report)
      : m_graph(graph),
        m_options(options),
        m_phase(phase),
        m_report(report),
        m_list(phase == Phase::Forward ? report.forward : report.backward),
        m_entryOf(graph.nodes().size(), nullptr),
        m_isFused(graph.nodes().size(), false) {
    for (const FusedOperation& entry : m_list)
      for (const NodeId id : entry.nodes) m_entryOf[static_cast<std::size_t>(id)] = &entry;
    if (phase == Phase::Forward) m_plainlySaved = plainlySaved();
  }

  void apply(const FusionRule& rule) {
    for (const FusedOperation& entry : m_list)
      for (const Reading& reading : quantizedReadings(entry)) tryAt(rule, reading);
  }

 private:
  // Producers and consumers ------------------------------------------------------------------------------------------

  EntryOperands operandsOf(const FusedOperation& entry) const {
    return m_phase == Phase::Forward ? forwardOperands(m_graph, entry, {}) : backwardOperands(m_graph, entry);
  }

  std::vector<Reading> quantizedReadings(const FusedOperation& entry) const {
    std::vector<Reading> readings;
    if (std::ranges::none_of(entry.nodes, [&](NodeId id) { return m_graph.node(id).quantizers.any(); }))
      return readings;
    for (const OperandUse& use : operandsOf(entry).operands) {
      const std::optional<GemmOperand> operand = gemmOperand(m_graph, entry, use.key);
      const bool isWanted = operand && use.access == OperandAccess::Read && operand->type == wantedType() &&
                            quantizersOf(m_graph.node(operand->node), operand->type).any() &&
                            (!isOfAttention(*operand) || isFirstOfAttention(*operand));
      if (isWanted) readings.push_back(rootOf({*operand, valueOf(entry, use.key)}));
    }
    return readings;
  }

  bool isOfAttention(const GemmOperand& operand) const { return isQuantizedAttention(m_graph.node(operand.node)); }

  /// Queries stand for keys and values, too: the three have one scale.
  static bool isFirstOfAttention(const GemmOperand& operand) {
    return operand.type == TensorType::Input && operand.slot == AttentionForm::kQuery;
  }

  /// All tensors that are quantized together: x, k and v of an attention, or the only one.
  std::vector<Reading> partsOf(const Reading& reading) const {
    if (!isOfAttention(reading.operand)) return {reading};
    std::vector<Reading> parts;
    for (int slot = AttentionForm::kQuery; slot <= AttentionForm::kValue; ++slot) {
      const NodeId node = reading.operand.node;
      const ValueId value = m_graph.node(node).inputs[static_cast<std::size_t>(slot)];
      parts.push_back(rootOf({{node, reading.operand.type, slot}, value}));
    }
    return parts;
  }

  TensorType wantedType() const { return m_phase == Phase::Forward ? TensorType::Input : TensorType::GradOutput; }

  ValueId valueOf(const FusedOperation& entry, const OperandKey& key) const {
    const Node& node = m_graph.node(entry.nodes[static_cast<std::size_t>(key.member)]);
    const auto slot = static_cast<std::size_t>(key.slot);
    return key.kind == OperandKind::Input ? node.inputs[slot] : node.outputs[slot];
  }

  /// The op that makes the value, or the first that makes a part of its gradient; -1: it comes from outside. In a
  /// window all outputs have gradients, so that an op may need some whose entry takes no part in backward.
  NodeId makerOf(ValueId id) const {
    const Value& value = m_graph.value(id);
    if (m_phase == Phase::Forward) return value.producer;
    const std::vector<NodeId> makers = gradientMakers(value);
    return makers.empty() || !entryOf(makers.front()) ? -1 : makers.front();
  }

  std::vector<NodeId> gradientMakers(const Value& value) const {
    std::vector<NodeId> makers;
    for (const Use& use : value.uses)
      if (m_graph.node(use.node).needs.inputs[static_cast<std::size_t>(use.slot)]) makers.push_back(use.node);
    return makers;
  }

  // Views ------------------------------------------------------------------------------------------------------------

  /// The tensor that the read tensor is a view of. TransformerEngine does not look through transparent ops.
  Reading rootOf(const Reading& reading) const {
    Reading root = reading;
    root.isShared = hasOtherReaders(root.value);
    if (m_options.book == RuleBook::Te) return root;
    const auto before = [&] { return sourceOf(root.value, isOfAttention(reading.operand)); };
    for (ValueId next = before(); next >= 0; next = before()) {
      root.isShared |= hasOtherReaders(next) || isSummedOnTheWay(*entryOf(makerOf(root.value)));
      root.value = next;
    }
    const bool isMadeHere = makerOf(root.value) >= 0;
    return isMadeHere ? root : Reading{reading.operand, reading.value, hasOtherReaders(reading.value)};
  }

  bool hasOtherReaders(ValueId id) const {
    const Value& value = m_graph.value(id);
    return m_phase == Phase::Forward && (value.uses.size() > 1 || value.isOutput || m_plainlySaved.contains(id));
  }

  /// The value that this one is a view of, or the one with this value's gradient; -1: there is none. hasAnyShape:
  /// scales do not depend on rows.
  ValueId sourceOf(ValueId id, bool hasAnyShape) const {
    const NodeId maker = makerOf(id);
    if (maker < 0 || isSum(id)) return -1;
    const FusedOperation& entry = *entryOf(maker);
    const OperandKind kind = m_phase == Phase::Forward ? OperandKind::Input : OperandKind::GradOutput;
    for (const ViewOperand& view : operandsOf(entry).views) {
      if (!isOf(id, entry, view.view) || view.source.kind != kind) continue;
      const ValueId source = valueOf(entry, view.source);
      const TensorSpec &from = m_graph.value(source).spec, &to = m_graph.value(id).spec;
      return from == to || (hasAnyShape && from.numElements() == to.numElements()) ? source : -1;
    }
    return -1;
  }

  bool isSum(ValueId id) const { return m_phase == Phase::Backward && numParts(id) > 1; }

  std::size_t numParts(ValueId id) const {
    const Value& value = m_graph.value(id);
    return gradientMakers(value).size() + (value.isOutput ? 1 : 0);
  }

  // Judging ----------------------------------------------------------------------------------------------------------

  void tryAt(const FusionRule& rule, const Reading& reading) {
    const NodeId maker = makerOf(reading.value);
    if (maker < 0 || isAlreadyFused(reading.operand)) return;
    const NodeId linear = reading.operand.node;
    Match match{m_graph, rule, {maker, linear}, {0, 1}};
    if (m_phase == Phase::Backward) std::ranges::reverse(match.nodes);
    if (!rule.chain[0].matches(match.node(0)) || !rule.chain[1].matches(match.node(1))) return;
    Attempt attempt{.rule = &rule, .nodes = match.nodes, .stepsMatched = 2, .outcome = Outcome::Fused};
    attempt.saving = savingOf(rule, reading);
    if (!refuse(match, reading, attempt)) take(reading, attempt);
    m_report.attempts.push_back(std::move(attempt));
  }

  void take(const Reading& reading, Attempt& attempt) {
    const auto& [linear, type, slot] = reading.operand;
    const bool isAmaxOnly = attempt.rule->findsAmaxOnly;
    m_report.fusedOperands.push_back({linear, type, isAmaxOnly});
    m_isFused[static_cast<std::size_t>(linear)] = true;
    std::vector<std::string> makers;
    for (const Reading& part : partsOf(reading)) {
      const NodeId maker = makerOf(part.value);
      if (m_taken.emplace(entryOf(maker), part.value).second) makers.push_back(m_graph.node(maker).id);
      m_fusedReaders[part.value].push_back(part.operand);
    }
    const std::string from =
        makers.size() > 1 ? fmt::format("{}", fmt::join(makers, ", ")) : m_graph.node(makerOf(reading.value)).id;
    const std::string& to = m_graph.node(linear).id;
    const char* const s = makers.size() > 1 ? "" : "s";
    attempt.explanation =
        isAmaxOnly
            ? fmt::format("{} compute{} the amax with which {} quantizes its {}.", from, s, to, roleName(type))
            : fmt::format("{} write{} the quantized GEMM operand{} of {}.", from, s, makers.size() > 1 ? "s" : "", to);
  }

  bool isAlreadyFused(const GemmOperand& operand) const { return m_isFused[static_cast<std::size_t>(operand.node)]; }

  const FusedOperation* entryOf(NodeId id) const { return m_entryOf[static_cast<std::size_t>(id)]; }

  bool refuse(const Match& match, const Reading& reading, Attempt& attempt) const {
    const std::vector<Reading> parts = partsOf(reading);
    const auto isBehindBorder = [&](const Reading& part) {
      const NodeId maker = makerOf(part.value);
      return maker >= 0 && refuseBorder(maker, part.operand.node, attempt);
    };
    if (refuseSwitchedOff(match, attempt) || std::ranges::any_of(parts, isBehindBorder) ||
        refuseCondition(match, attempt) || refuseApart(match.rule, parts, attempt))
      return true;
    return std::ranges::any_of(parts, [&](const Reading& part) {
      const NodeId maker = makerOf(part.value);
      return refuseSum(part, attempt) || refuseOutsideBook(part, maker, attempt) ||
             refuseHighPrecision(maker, attempt) || refuseView(part, maker, attempt) ||
             refuseSecond(part, maker, attempt) || refuseKernel(part, maker, attempt);
    });
  }

  static bool refuse(Attempt& attempt, Outcome outcome, std::string explanation) {
    attempt.outcome = outcome;
    attempt.explanation = std::move(explanation);
    return true;
  }

  bool refuseSwitchedOff(const Match& match, Attempt& attempt) const {
    const std::string entry = switchFor(m_graph, match.rule, match.nodes, m_options.switches.without);
    if (entry.empty()) return false;
    return refuse(attempt, Outcome::SwitchedOff, fmt::format("{} is switched off by \"{}\".", match.rule.name, entry));
  }

  bool refuseBorder(NodeId maker, NodeId reader, Attempt& attempt) const {
    const auto [first, second] = m_phase == Phase::Forward ? std::pair(maker, reader) : std::pair(reader, maker);
    if (!hasBorderBetween(m_graph, first, second)) return false;
    attempt.repairs = {withoutBorders(m_graph, first, second)};
    return refuse(attempt, Outcome::BrokenChain, borderText(m_graph, first, second));
  }

  static bool refuseCondition(const Match& match, Attempt& attempt) {
    for (const Condition& condition : match.rule.conditions)
      if (const Verdict verdict = condition.holds(match); !verdict)
        return refuse(attempt, Outcome::ConditionFailed, verdict.reason());
    return false;
  }

  /// x, k and v have memory of their own, and producers that quantize. As they share a scale, all are fused or none.
  bool refuseApart(const FusionRule& rule, const std::vector<Reading>& parts, Attempt& attempt) const {
    std::set<ValueId> values;
    for (const Reading& part : parts) {
      if (!values.insert(part.value).second)  // it would be written several times
        return refuse(attempt, Outcome::ConditionFailed,
                      fmt::format("{} is several of the inputs of {}, of which each is quantized.",
                                  m_graph.value(part.value).name, m_graph.node(part.operand.node).id));
      const NodeId maker = makerOf(part.value);
      if (parts.size() == 1 || (maker >= 0 && rule.chain[0].matches(m_graph.node(maker)))) continue;
      return refuse(
          attempt, Outcome::ConditionFailed,
          fmt::format("{} shares its scale with {}, but is not produced by {}.", m_graph.value(part.value).name,
                      m_graph.value(parts.front().value).name, rule.chain[0].description()));
    }
    return false;
  }

  bool refuseSum(const Reading& reading, Attempt& attempt) const {
    if (!isSum(reading.value)) return false;
    return refuse(attempt, Outcome::OutsideUse,
                  fmt::format("The gradient of {} is the sum of {} gradients, computed by a separate step.",
                              m_graph.value(reading.value).name, numParts(reading.value)));
  }

  /// TransformerEngine's norms and activations take the quantizer of their neighbor, its linear ops one whose scale is
  /// known beforehand; other ops ignore it.
  bool refuseOutsideBook(const Reading& reading, NodeId maker, Attempt& attempt) const {
    if (m_options.book == RuleBook::All) return false;
    const FusedOperation& entry = *entryOf(maker);
    const std::string& category = m_graph.node(maker).operation->category;
    const bool isNorm = category == "Normalization" && m_phase == Phase::Forward;
    const bool isTaken = entry.isFused() ? entry.rule->name == "BackwardActivationBias"
                                         : isNorm || category == "Activation" || isSummedOnTheWay(entry);
    if (isTaken || (isProduct(m_graph, entry) && quantizersFor(reading).isDelayed())) return false;
    return refuse(
        attempt, Outcome::ConditionFailed,
        fmt::format("In TransformerEngine {} does not use the quantizer of its neighbor.", entry.name(m_graph)));
  }

  /// As in TransformerEngine, a GEMM writes quantized results of quantized factors alone.
  bool refuseHighPrecision(NodeId maker, Attempt& attempt) const {
    const Node* linear = &m_graph.node(maker);
    const NodeId before = m_graph.value(linear->inputs[0]).producer;
    const bool isBias = m_phase == Phase::Forward && linear->operation->name == "Bias" && before >= 0;
    if (isBias && entryOf(before) == entryOf(maker)) linear = &m_graph.node(before);
    if (linear->operation->name != "BasicLinear") return false;
    const LinearQuantizers& own = linear->quantizers;
    const bool isQuantized = m_phase == Phase::Forward ? own.input.rowwise && own.weight.rowwise
                                                       : own.gradOutput.rowwise && own.weight.columnwise;
    return !isQuantized &&
           refuse(attempt, Outcome::ConditionFailed,
                  fmt::format("{} multiplies in high precision, so its GEMM writes no quantized result.", linear->id));
  }

  bool refuseView(const Reading& reading, NodeId maker, Attempt& attempt) const {
    const FusedOperation& entry = *entryOf(maker);
    if (!isView(reading, entry)) return false;
    const std::string& id = m_graph.node(maker).id;
    if (!isSummedOnTheWay(entry))
      return refuse(attempt, Outcome::ConditionFailed,
                    fmt::format("{} passes its input on, so it writes no tensor that could be quantized.", id));
    if (attempt.rule->findsAmaxOnly)
      return refuse(attempt, Outcome::ConditionFailed,
                    fmt::format("{} sums the gradient in the pass that would quantize it, but this scale needs the "
                                "amax before that pass.",
                                id));
    return readsPlainly(reading.operand) &&
           refuse(attempt, Outcome::ConditionFailed,
                  fmt::format("{} passes the gradient on, and a GEMM also reads it in high precision.", id));
  }

  /// Does the entry hand the value on as it gets it?
  bool isView(const Reading& reading, const FusedOperation& entry) const {
    return std::ranges::any_of(operandsOf(entry).views,
                               [&](const ViewOperand& view) { return isOf(reading.value, entry, view.view); });
  }

  /// A Bias in backward hands the gradient on, and reads all of it for its own gradient.
  bool isSummedOnTheWay(const FusedOperation& entry) const {
    const Node& node = m_graph.node(entry.nodes.front());
    return m_phase == Phase::Backward && !entry.isFused() && node.operation->name == "Bias" &&
           node.needs.anyParameter();
  }

  /// Is this result of the entry the value, or its gradient?
  bool isOf(ValueId id, const FusedOperation& entry, const OperandKey& key) const {
    const Node& node = m_graph.node(entry.nodes[static_cast<std::size_t>(key.member)]);
    const auto slot = static_cast<std::size_t>(key.slot);
    if (m_phase == Phase::Forward) return key.kind == OperandKind::Output && node.outputs[slot] == id;
    return key.kind == OperandKind::GradInput && node.inputs[slot] == id;
  }

  bool refuseSecond(const Reading& reading, NodeId maker, Attempt& attempt) const {
    const auto taken = m_taken.find(entryOf(maker));
    if (taken == m_taken.end() || (taken->second == reading.value && !isOfAttention(reading.operand))) return false;
    return refuse(attempt, Outcome::TakenByAnother,
                  fmt::format("{} already quantizes another of its outputs.", entryOf(maker)->name(m_graph)));
  }

  bool refuseKernel(const Reading& reading, NodeId maker, Attempt& attempt) const {
    if (!m_options.capabilities) return false;
    const FusedOperation& entry = *entryOf(maker);
    const TensorQuantizers none;
    const CopiesQuery copies{attempt.rule->findsAmaxOnly ? none : quantizersFor(reading),
                             m_graph.value(reading.value).spec};
    const std::string kernel = entry.kernelName(m_graph);
    const Verdict verdict = m_options.capabilities({m_graph, kernel, m_phase, entry.nodes, &copies});
    return !verdict && refuse(attempt, Outcome::NoKernel, verdict.reason());
  }

  const TensorQuantizers& quantizersFor(const Reading& reading) const {
    return quantizersOf(m_graph.node(reading.operand.node), reading.operand.type);
  }

  // Savings ----------------------------------------------------------------------------------------------------------

  /// The quantizing step's launch and its reads; and the tensor itself, if it has no other consumer and is written
  /// here. For an amax alone one of the two reads.
  Saving savingOf(const FusionRule& rule, const Reading& reading) const {
    if (isQuantizedFor(reading)) return {};
    Saving saving{.bytes = 0, .launches = rule.findsAmaxOnly ? 0 : 1};
    for (const Reading& part : partsOf(reading)) {
      const bool isStored = rule.findsAmaxOnly || part.isShared || readsPlainly(part.operand) ||
                            makerOf(part.value) < 0 || isView(part, *entryOf(makerOf(part.value)));
      saving.bytes += m_graph.value(part.value).spec.bytes() * (isStored ? 1 : 2);
    }
    return saving;
  }

  /// Does an earlier reader of the tensor share its quantized tensors?
  bool isQuantizedFor(const Reading& reading) const {
    const TensorQuantizers& quantizers = quantizersFor(reading);
    if (quantizers.isDelayed()) return false;
    const auto readers = m_fusedReaders.find(reading.value);
    return readers != m_fusedReaders.end() && std::ranges::any_of(readers->second, [&](const GemmOperand& other) {
             return quantizersOf(m_graph.node(other.node), other.type) == quantizers;
           });
  }

  /// Does a GEMM also read the plain tensor?
  bool readsPlainly(const GemmOperand& operand) const {
    const TensorQuantizers& quantizers = quantizersOf(m_graph.node(operand.node), operand.type);
    return !quantizers.rowwise || (!quantizers.columnwise && !quantizers.isDequantizedInBackward);
  }

  /// Values that backward reads other than as a quantized operand of a GEMM.
  SortedSet<ValueId> plainlySaved() const {
    SortedSet<ValueId> saved;
    for (const FusedOperation& entry : m_report.backward)
      for (const MemberTensor& read : savedReads(m_graph, entry)) {
        const OperandKey key{read.member, read.tensor.kind, read.tensor.slot};
        const std::optional<GemmOperand> operand = gemmOperand(m_graph, entry, key);
        const bool isCopy = operand && !readsPlainly(*operand);
        if (!isCopy && (key.kind == OperandKind::Input || key.kind == OperandKind::Output))
          saved.insert(valueOf(entry, key));
      }
    return saved;
  }

  const Graph& m_graph;
  const FusionOptions& m_options;
  Phase m_phase;
  FusionReport& m_report;
  const std::vector<FusedOperation>& m_list;
  std::vector<const FusedOperation*> m_entryOf;
  SortedSet<ValueId> m_plainlySaved;
  std::map<const FusedOperation*, ValueId> m_taken;
  std::vector<bool> m_isFused;  // by reader: its operand of this pass
  std::unordered_map<ValueId, std::vector<GemmOperand>> m_fusedReaders;
};

}  // namespace

void addFusedOperands(const Graph& graph, const FusionOptions& options, const RuleCatalog& rules,
                      FusionReport& report) {
  const auto run = [&](FusionPass pass, Phase phase) {
    FusedOperandPass fusedOperands(graph, options, phase, report);
    for (const auto& rule : rules.rules(pass))
      if (options.book == RuleBook::All || rule->origin == RuleOrigin::Te) fusedOperands.apply(*rule);
  };
  if (std::ranges::none_of(graph.nodes(), [](const Node& node) { return node.quantizers.any(); })) return;
  run(FusionPass::ForwardQuantization, Phase::Forward);
  if (graph.pass() == ExecutionMode::Training) run(FusionPass::BackwardQuantization, Phase::Backward);
}

}  // namespace fuseline
