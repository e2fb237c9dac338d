// The questions that every match must answer, in the order in which their reasons are worth knowing.
//
// An entry runs at the place of its last op. A fusion is legal if every outside producer runs before that place and
// every outside reader after it; as list order then respects all wires, no cycle can arise.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/legality.h"

#include "core/fusion/node_name.h"
#include "core/fusion/te_caveat.h"
#include "core/quant/apply_recipe.h"
#include "core/support/text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// "ForwardLinearBiasAdd(fc2, add)", with all ops: as runs name their steps.
std::string stepName(const Match& match) {
  std::vector<std::string_view> ids;
  for (const NodeId id : match.nodes) ids.push_back(match.graph.node(id).id);
  return fmt::format("{}({})", match.rule.name, fmt::join(ids, ", "));
}

/// A chain follows wires, so that its ops are in the order of the graph.
bool contains(const Match& match, NodeId id) { return std::ranges::binary_search(match.nodes, id); }

std::optional<Refusal> refuseCondition(const Match& match) {
  for (const Condition& condition : match.rule.conditions) {
    const Verdict verdict = condition.holds(match);
    if (verdict) continue;
    return Refusal{.explanation = verdict.reason(),
                   .repairs = condition.repairs ? condition.repairs(match) : std::vector<Repair>()};
  }
  return std::nullopt;
}

bool isMadeInside(const Match& match, NodeId id, TensorType type) {
  const Node& node = match.graph.node(id);
  if (type == TensorType::Input)
    return match.rule.pass != FusionPass::Backward && contains(match, match.graph.value(node.inputs.front()).producer);
  const auto& uses = match.graph.value(node.outputs.front()).uses;
  return match.rule.pass != FusionPass::Forward && !match.rule.readsLastGradientInGemms &&
         std::ranges::any_of(uses, [&](const Use& use) { return contains(match, use.node); });
}

std::string_view formatText(const Node& node, TensorType type) {
  const TensorQuantizers& quantizers = quantizersOf(node, type);
  return formatName((quantizers.rowwise ? quantizers.rowwise : quantizers.columnwise)->format);
}

/// A recipe quantizes what a GEMM reads; inside a fusion there would be no such tensor.
std::optional<Refusal> refuseQuantizer(const Match& match) {
  if (match.rule.quantizesInside) return std::nullopt;
  for (const NodeId id : match.nodes)
    for (const TensorType type : {TensorType::Input, TensorType::GradOutput})
      if (quantizersOf(match.graph.node(id), type).any() && isMadeInside(match, id, type))
        return Refusal{.explanation = fmt::format("The recipe quantizes the {} of {} to {}, so it must be materialized "
                                                  "before the GEMM; a fused kernel would not write it to memory.",
                                                  roleName(type), nameOf(match.graph, id),
                                                  formatText(match.graph.node(id), type))};
  return std::nullopt;
}

/// A gradient that waits is a step of its own; a kernel of several ops computes all of theirs at once.
std::optional<Refusal> refuseDelayed(const Match& match) {
  if (match.rule.pass == FusionPass::Forward) return std::nullopt;
  for (const NodeId id : match.nodes)
    if (match.graph.node(id).delayedNeeds().anyParameter())
      return Refusal{.explanation = fmt::format(
                         "{} has delay_wgrad_compute on, so its weight gradient is computed after the rest of "
                         "backward; the fusion would compute it earlier. Set delay_wgrad_compute to false.",
                         nameOf(match.graph, id))};
  return std::nullopt;
}

std::optional<Refusal> refuseTaken(const Match& match, const EntryList& entries) {
  for (const NodeId id : match.nodes)
    if (const FusedOperation* entry = entries.entryOf(id))
      return Refusal{
          .outcome = Outcome::TakenByAnother,
          .explanation = fmt::format("{} is already part of {} ({}), which comes earlier in the rule set.",
                                     match.graph.node(id).id, entry->rule->name, idsOf(match.graph, entry->nodes))};
  return std::nullopt;
}

std::optional<Refusal> refuseProducers(const Match& match, const EntryList& entries, const Node& node) {
  for (const ValueId input : node.inputs) {
    const NodeId producer = match.graph.value(input).producer;
    if (producer >= 0 && !contains(match, producer) && entries.place(producer) >= match.nodes.back())
      return Refusal{.outcome = Outcome::OutsideUse,
                     .explanation = fmt::format("{0} needs the result of {1}, but {1} runs after {0}.", node.id,
                                                nameOf(match.graph, producer))};
  }
  return std::nullopt;
}

std::optional<Refusal> refuseReaders(const Match& match, const EntryList& entries, const Value& value) {
  const bool isReadInside = std::ranges::any_of(value.uses, [&](const Use& use) { return contains(match, use.node); });
  if (isReadInside && !match.rule.writesBranches && (value.isOutput || value.uses.size() > 1))
    return Refusal{.outcome = Outcome::OutsideUse,
                   .explanation = fmt::format("{} has several consumers, one of them inside the fusion, so their "
                                              "gradients would have to be summed in between.",
                                              value.name)};
  for (const Use& use : value.uses)
    if (!contains(match, use.node) && entries.place(use.node) <= match.nodes.back())
      return Refusal{.outcome = Outcome::OutsideUse,
                     .explanation = fmt::format("{} consumes {} before {} has run.", nameOf(match.graph, use.node),
                                                value.name, match.graph.node(match.nodes.back()).id)};
  return std::nullopt;
}

std::optional<Refusal> refuseSchedule(const Match& match, const EntryList& entries) {
  for (const NodeId id : match.nodes) {
    const Node& node = match.graph.node(id);
    if (std::optional<Refusal> refusal = refuseProducers(match, entries, node)) return refusal;
    for (const ValueId output : node.outputs)
      if (std::optional<Refusal> refusal = refuseReaders(match, entries, match.graph.value(output))) return refusal;
  }
  return std::nullopt;
}

std::optional<Refusal> refuseHardware(const Match& match) {
  const std::optional<HardwareNeed>& need = match.rule.hardware;
  const std::optional<ComputeCapability>& device = match.target.capability;
  if (!need || (device && need->isMetBy(*device))) return std::nullopt;
  return Refusal{.outcome = Outcome::NoKernel,
                 .explanation = fmt::format("{} needs a GPU of {}, but the device {}.", match.rule.name,
                                            toString(*need), device ? "has " + toString(*device) : "is no GPU")};
}

/// TransformerEngine fuses whatever fits its windows; our own rules also want a gain.
std::optional<Refusal> refuseUseless(const Match& match, const Saving& saving) {
  const bool saves = saving.bytes > 0 || saving.launches > 0;
  if (saves || match.rule.origin == RuleOrigin::Te) return std::nullopt;
  return Refusal{.explanation = "No savings: at most one of these ops moves data."};
}

}  // namespace

bool isAsked(const Graph& graph, const FusionOptions& options, const Attempt& attempt) {
  const std::string& askedBy = attempt.rule->askedBy;
  const bool isAskedByOp = !askedBy.empty() && graph.node(attempt.nodes.front()).attributes.has(askedBy);
  return isAskedByOp || !switchFor(graph, *attempt.rule, attempt.nodes, options.switches.with).empty();
}

Attempt Legality::tryFrom(NodeId start, const FusionRule& rule, const EntryList& entries, const Claims& claims,
                          std::size_t mostOps) const {
  Walk walk = walkChain(m_graph, rule, entries, claims, start, mostOps);
  if (walk.outcome != Outcome::Fused)
    return {.rule = &rule,
            .nodes = std::move(walk.nodes),
            .stepsMatched = walk.stepsMatched,
            .outcome = walk.outcome,
            .explanation = std::move(walk.explanation),
            .repairs = std::move(walk.repairs)};
  Attempt attempt = tryOn(rule, std::move(walk.nodes), std::move(walk.steps), entries);
  if (attempt.outcome != Outcome::Fused) return attempt;
  if (!walk.explanation.empty()) attempt.explanation += " " + walk.explanation;  // why it is not longer
  attempt.repairs = std::move(walk.repairs);
  return attempt;
}

Attempt Legality::tryOn(const FusionRule& rule, std::vector<NodeId> nodes, std::vector<int> steps,
                        const EntryList& entries) const {
  const Match match{m_graph, rule, std::move(nodes), std::move(steps), m_options.target};
  Attempt attempt{.rule = &rule, .nodes = match.nodes, .stepsMatched = rule.chain.size(), .outcome = Outcome::Fused};
  attempt.saving = m_savings.savingOf(match);
  attempt.measured = measuredAt(match);
  if (std::optional<Refusal> refusal = refusalOf(match, attempt, entries)) {
    attempt.outcome = refusal->outcome;
    attempt.explanation = std::move(refusal->explanation);
    attempt.repairs = std::move(refusal->repairs);
    if (attempt.outcome == Outcome::OnRequest) attempt.saving.reset();  // the traffic model does not know the price
    return attempt;
  }
  if (m_options.predictor) attempt.saving = m_options.predictor(match);
  attempt.caveat = teCaveat(m_graph, rule, match.nodes, m_hazards);
  attempt.explanation =
      fmt::format("{} are fused{}.", idsOf(m_graph, match.nodes), attempt.caveat.empty() ? "" : "; " + attempt.caveat);
  return attempt;
}

/// The last question is whether anybody asked for the fusion: what else is wrong with a rule is worth more to know.
std::optional<Refusal> Legality::refusalOf(const Match& match, const Attempt& attempt, const EntryList& entries) const {
  std::optional<Refusal> refusal = refuseSwitchedOff(match);
  if (!refusal) refusal = refuseCondition(match);
  if (!refusal) refusal = refuseIdle(match);
  if (!refusal) refusal = refuseQuantizer(match);
  if (!refusal) refusal = refuseDelayed(match);
  if (!refusal) refusal = refuseTaken(match, entries);
  if (!refusal) refusal = refuseSchedule(match, entries);
  if (!refusal) refusal = refuseHardware(match);
  if (!refusal) refusal = refuseKernel(match);
  if (!refusal) refusal = refuseUseless(match, *attempt.saving);
  if (!refusal) refusal = refuseSlower(attempt);
  if (!refusal) refusal = refuseUnasked(match, attempt);
  return refusal;
}

std::optional<Refusal> Legality::refuseSwitchedOff(const Match& match) const {
  const std::string entry = switchFor(m_graph, match.rule, match.nodes, m_options.switches.without);
  if (entry.empty()) return std::nullopt;
  return Refusal{.outcome = Outcome::SwitchedOff,
                 .explanation = fmt::format("{} is switched off by \"{}\".", match.rule.name, entry)};
}

/// Backward fusions need every op to take part, and our own joint ones: a frozen op has saved nothing.
std::optional<Refusal> Legality::refuseIdle(const Match& match) const {
  if (match.rule.pass == FusionPass::Forward || mayHaveIdleOps(match)) return std::nullopt;
  for (const NodeId id : match.nodes)
    if (!m_graph.node(id).takesPartInBackward())
      return Refusal{.explanation =
                         fmt::format("{} needs no gradient, so it is not part of backward.", nameOf(m_graph, id))};
  return std::nullopt;
}

/// TransformerEngine does not ask which ops need a gradient; entries in which none does are not run backward.
bool Legality::mayHaveIdleOps(const Match& match) const {
  if (match.rule.origin != RuleOrigin::Te) return false;
  return match.rule.pass == FusionPass::Joint ||
         (m_options.book == RuleBook::Te && takesPartInBackward(m_graph, match.nodes));
}

std::optional<Refusal> Legality::refuseKernel(const Match& match) const {
  if (!m_options.capabilities) return std::nullopt;
  for (const Phase phase : phasesOf(m_graph, match.rule.pass)) {
    const Verdict verdict = m_options.capabilities({m_graph, match.rule.becomes, phase, match.nodes});
    if (!verdict) return Refusal{.outcome = Outcome::NoKernel, .explanation = verdict.reason()};
  }
  return std::nullopt;
}

/// TransformerEngine measures nothing, and what a user asks for by name is done.
std::optional<Refusal> Legality::refuseSlower(const Attempt& attempt) const {
  const bool mayRefuse = m_options.book != RuleBook::Te && m_options.gains.decides;
  if (!mayRefuse || !attempt.measured || !attempt.measured->isSlower() || isAsked(m_graph, m_options, attempt))
    return std::nullopt;
  const std::string worth = gainText(*attempt.saving, attempt.measured.get(), m_options.gains.device);
  return Refusal{.outcome = Outcome::MeasuredSlower,
                 .explanation = fmt::format("It was {}. It is used only on request.", worth)};
}

std::optional<Refusal> Legality::refuseUnasked(const Match& match, const Attempt& attempt) const {
  if (match.rule.price.empty() || isAsked(m_graph, m_options, attempt)) return std::nullopt;
  return Refusal{.outcome = Outcome::OnRequest,
                 .explanation = fmt::format("It would keep {} less for backward. {} It is used only on request.",
                                            formatBytes(m_savings.keptLess(match)), match.rule.price)};
}

std::shared_ptr<const MeasuredGain> Legality::measuredAt(const Match& match) const {
  const auto& measured = m_options.gains.measured;
  if (measured.empty()) return nullptr;
  const auto found = measured.find(stepName(match));
  return found == measured.end() ? nullptr : found->second;
}

}  // namespace fuseline
