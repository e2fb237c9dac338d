// OperationFuser: joint, then forward and backward rules, each list in order, each rule along the graph.
//
// An entry runs at the place of its last op. A fusion is legal if every outside producer runs before that place and
// every outside reader after it; as list order then respects all wires, no cycle can arise.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"

#include "core/fusion/sequential_border.h"
#include "core/fusion/step_operands.h"
#include "core/quant/apply_recipe.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// "fc1.linear (BasicLinear)".
std::string nameOf(const Graph& graph, NodeId id) {
  return fmt::format("{} ({})", graph.node(id).id, graph.node(id).operation->name);
}

std::string idsOf(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<std::string> ids;
  for (const NodeId id : nodes) ids.push_back(graph.node(id).id);
  return fmt::format("{}", fmt::join(ids, ", "));
}

/// The list that one pass is building: which entry each op belongs to so far.
struct EntryList {
  explicit EntryList(const Graph& graph) : owner(graph.nodes().size(), -1) {}
  std::vector<FusedOperation> fusions;
  std::vector<int> owner;  // index into fusions, or -1

  const FusedOperation* entryOf(NodeId id) const {
    const int index = owner[static_cast<std::size_t>(id)];
    return index < 0 ? nullptr : &fusions[static_cast<std::size_t>(index)];
  }
  /// Where the op's entry runs.
  NodeId place(NodeId id) const {
    const FusedOperation* entry = entryOf(id);
    return entry ? entry->nodes.back() : id;
  }
  void add(FusedOperation fusion) {
    for (const NodeId id : fusion.nodes) owner[static_cast<std::size_t>(id)] = static_cast<int>(fusions.size());
    fusions.push_back(std::move(fusion));
  }
};

/// How far a chain can be followed from a start op.
struct Walk {
  std::vector<NodeId> nodes;
  std::vector<int> steps;
  std::size_t stepsMatched = 0;
  Outcome outcome = Outcome::Fused;  // Fused: the whole chain matched
  std::string explanation;
  std::vector<Repair> repairs;
};

class ChainWalker {
 public:
  ChainWalker(const Graph& graph, const FusionRule& rule, const EntryList& entries)
      : m_graph(graph), m_rule(rule), m_entries(entries) {}

  /// Precondition: the first step matches `start`.
  Walk walk(NodeId start) {
    take(start, 0);
    for (std::size_t step = 0; step < m_rule.chain.size(); ++step) {
      if (!walkStep(step)) return std::move(m_walk);
      m_walk.stepsMatched = step + 1;
    }
    explainEnd();
    return std::move(m_walk);
  }

 private:
  void take(NodeId id, std::size_t step) {
    m_walk.nodes.push_back(id);
    m_walk.steps.push_back(static_cast<int>(step));
  }

  bool walkStep(std::size_t step) {
    const ChainStep& wanted = m_rule.chain[step];
    const bool isFirst = step == 0;
    const bool isMet = isFirst || takeNext(step);
    if (!isMet) return wanted.isOptional() || fail(step);
    while (wanted.isRepeated() && takeNext(step)) {
    }
    return true;
  }

  bool takeNext(std::size_t step) {
    const NodeId next = linkedReader(step);
    const bool isFree = !m_rule.chain[step].isRepeated() || (next >= 0 && !m_entries.entryOf(next));
    if (next < 0 || !isFree) return false;
    take(next, step);
    return true;
  }

  const Value& mainOutput() const { return m_graph.value(m_graph.node(m_walk.nodes.back()).outputs.front()); }

  /// TransformerEngine's windows follow the main tensor only; ours also accept it as an extra operand of the same
  /// shape, but not as one value a row.
  bool accepts(const Use& use) const {
    if (use.slot == 0) return true;
    const auto shapeOf = [&](int slot) { return m_graph.spec(use.node, OperandKind::Input, slot).shape; };
    return m_rule.origin == RuleOrigin::Fuseline && shapeOf(use.slot) == shapeOf(0);
  }

  /// The one op that reads the main output, if nobody else reads it; else -1.
  NodeId onlyReader() const {
    const Value& value = mainOutput();
    const bool isOnly = !value.isOutput && value.uses.size() == 1 && accepts(value.uses.front());
    return isOnly ? value.uses.front().node : -1;
  }

  bool isBeyondBorder(NodeId reader) const { return hasBorderBetween(m_graph, m_walk.nodes.back(), reader); }

  /// The only reader, if it fits the step; else -1.
  NodeId linkedReader(std::size_t step) const {
    const NodeId reader = onlyReader();
    const bool isLinked = reader >= 0 && !isBeyondBorder(reader) && m_rule.chain[step].matches(m_graph.node(reader));
    return isLinked ? reader : -1;
  }

  /// Does the op fit the step, or one before it that may be left out?
  bool fits(NodeId id, std::size_t step) const {
    while (!m_rule.chain[step].matches(m_graph.node(id))) {
      if (step == 0 || !m_rule.chain[step - 1].isOptional()) return false;
      --step;
    }
    return true;
  }

  /// The chain would go on, if the border of a nested Sequential were not in between.
  bool endAtBorder(std::size_t step) {
    const NodeId reader = onlyReader();
    if (reader < 0 || !isBeyondBorder(reader) || !fits(reader, step)) return false;
    m_walk.explanation = borderText(m_graph, m_walk.nodes.back(), reader);
    m_walk.repairs = {withoutBorders(m_graph, m_walk.nodes.back(), reader)};
    return true;
  }

  /// A whole chain that could have been longer says why it is not.
  void explainEnd() {
    const std::size_t last = m_rule.chain.size() - 1;
    const bool isFilled = m_walk.steps.back() == static_cast<int>(last);
    if (m_rule.chain[last].isRepeated() || !isFilled) endAtBorder(last);
  }

  bool fail(std::size_t step) {
    m_walk.stepsMatched = step;
    if (const NodeId taken = linkedReader(step); taken >= 0) return failAtTaken(taken);
    m_walk.outcome = Outcome::BrokenChain;
    if (endAtBorder(step)) return false;
    const Value& value = mainOutput();
    const bool fitsButIsShared = std::ranges::any_of(
        value.uses, [&](const Use& use) { return m_rule.chain[step].matches(m_graph.node(use.node)); });
    const bool isShared = value.isOutput || value.uses.size() > 1;
    m_walk.outcome = fitsButIsShared && isShared ? Outcome::OutsideUse : Outcome::BrokenChain;
    m_walk.explanation = m_walk.outcome == Outcome::OutsideUse ? sharedText(value) : brokenText(step, value);
    return false;
  }

  /// The next op fits, but an earlier fusion has it.
  bool failAtTaken(NodeId id) {
    const FusedOperation& entry = *m_entries.entryOf(id);
    m_walk.outcome = Outcome::TakenByAnother;
    m_walk.explanation = fmt::format("{} is already part of {} ({}), which comes earlier in the rule book.",
                                     nameOf(m_graph, id), entry.rule->name, idsOf(m_graph, entry.nodes));
    return false;
  }

  std::string sharedText(const Value& value) const {
    std::vector<std::string> readers;
    for (const Use& use : value.uses) readers.push_back(m_graph.node(use.node).id);
    if (value.isOutput) readers.emplace_back("the outside (it is a pipeline output)");
    return fmt::format("{} is read by {}; the fusion needs it to have one reader, because it would no longer exist.",
                       value.name, fmt::join(readers, " and "));
  }

  std::string brokenText(std::size_t step, const Value& value) const {
    const std::string expected = m_rule.chain[step].description();
    const std::string after = nameOf(m_graph, m_walk.nodes.back());
    if (value.uses.empty())
      return fmt::format("After {} the pipeline ends; {} would have to come next.", after, expected);
    if (value.uses.size() > 1)
      return fmt::format("After {} the tensor branches to {} ops; {} would have to come next.", after,
                         value.uses.size(), expected);
    const Use& use = value.uses.front();
    const std::string& port = m_graph.node(use.node).operation->inputs[static_cast<std::size_t>(use.slot)].name;
    if (use.slot != 0)
      return fmt::format("After {} comes {}, but on its input {}; the rule follows the main input x.", after,
                         nameOf(m_graph, use.node), port);
    return fmt::format("After {} comes {}; {} would have to come next.", after, nameOf(m_graph, use.node), expected);
  }

  const Graph& m_graph;
  const FusionRule& m_rule;
  const EntryList& m_entries;
  Walk m_walk;
};

/// One pass over the graph with one rule list.
class PassFuser {
 public:
  PassFuser(const Graph& graph, const FusionOptions& options, const SavedSet& unfusedSaved, EntryList entries,
            std::vector<Attempt>& attempts)
      : m_graph(graph),
        m_options(options),
        m_unfusedSaved(unfusedSaved),
        m_entries(std::move(entries)),
        m_attempts(attempts) {}

  EntryList apply(const std::vector<std::shared_ptr<const FusionRule>>& rules) && {
    for (const auto& rule : rules) {
      if (m_options.book == RuleBook::Te && rule->origin != RuleOrigin::Te) continue;
      for (NodeId start = 0; start < static_cast<NodeId>(m_graph.nodes().size()); ++start)
        if (rule->chain.front().matches(m_graph.node(start))) attempt(*rule, start);
    }
    return std::move(m_entries);
  }

 private:
  void attempt(const FusionRule& rule, NodeId start) {
    if (isInside(rule, start)) return;
    Walk walk = ChainWalker(m_graph, rule, m_entries).walk(start);
    Attempt attempt{.rule = &rule, .nodes = walk.nodes, .stepsMatched = walk.stepsMatched};
    attempt.outcome = walk.outcome;
    if (walk.outcome == Outcome::Fused) judge(Match{m_graph, rule, walk.nodes, walk.steps}, attempt);
    if (attempt.outcome == walk.outcome) addReason(std::move(walk), attempt);
    if (attempt.outcome == Outcome::Fused) m_entries.add({.rule = &rule, .nodes = attempt.nodes});
    m_attempts.push_back(std::move(attempt));
  }

  /// Why the chain ends where it does.
  static void addReason(Walk walk, Attempt& attempt) {
    const bool isSecond = !attempt.explanation.empty() && !walk.explanation.empty();
    attempt.explanation += (isSecond ? " " : "") + walk.explanation;
    attempt.repairs = std::move(walk.repairs);
  }

  /// A long chain was matched from its head; its tails are no attempts of their own.
  bool isInside(const FusionRule& rule, NodeId start) const {
    const FusedOperation* entry = m_entries.entryOf(start);
    return entry && entry->rule == &rule && entry->nodes.front() != start;
  }

  void judge(const Match& match, Attempt& attempt) {
    attempt.saving = savingOf(match);
    if (refuseSwitchedOff(match, attempt) || refuseCondition(match, attempt) || refuseIdle(match, attempt) ||
        refuseQuantizer(match, attempt) || refuseDelayed(match, attempt) || refuseTaken(match, attempt) ||
        refuseSchedule(match, attempt) || refuseKernel(match, attempt) || refuseUseless(match, attempt) ||
        refuseUnasked(match, attempt))
      return;
    attempt.explanation = fmt::format("{} run as one.", idsOf(m_graph, match.nodes));
  }

  static bool refuse(Attempt& attempt, Outcome outcome, std::string explanation) {
    attempt.outcome = outcome;
    attempt.explanation = std::move(explanation);
    return true;
  }

  bool refuseSwitchedOff(const Match& match, Attempt& attempt) const {
    const std::string entry = switchFor(match, m_options.switches.without);
    if (entry.empty()) return false;
    return refuse(attempt, Outcome::SwitchedOff, fmt::format("{} is switched off by \"{}\".", match.rule.name, entry));
  }

  /// The last question: what else is wrong with a rule is worth more to know than that nobody asked for it.
  bool refuseUnasked(const Match& match, Attempt& attempt) const {
    if (match.rule.price.empty() || !switchFor(match, m_options.switches.with).empty()) return false;
    attempt.saving.reset();  // the traffic model does not know the price
    return refuse(attempt, Outcome::OnRequest,
                  fmt::format("It would keep {} less for backward. {} It is used on request: --with {}@{}.",
                              formatBytes(keptLess(match)), match.rule.price, match.rule.name, match.node(0).id));
  }

  /// The entry that names the rule, everywhere or at one of these ops; empty when there is none.
  static std::string switchFor(const Match& match, const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      const auto at = entry.find('@');
      if (entry.substr(0, at) != match.rule.name) continue;
      if (at == std::string::npos || isAt(match, entry.substr(at + 1))) return entry;
    }
    return {};
  }

  static bool isAt(const Match& match, const std::string& place) {
    return std::ranges::any_of(match.nodes, [&](NodeId id) { return match.graph.node(id).isAt(place); });
  }

  static bool refuseCondition(const Match& match, Attempt& attempt) {
    for (const Condition& condition : match.rule.conditions) {
      const Verdict verdict = condition.holds(match);
      if (verdict) continue;
      if (condition.repairs) attempt.repairs = condition.repairs(match);
      return refuse(attempt, Outcome::ConditionFailed, verdict.reason());
    }
    return false;
  }

  /// Backward and joint fusions need every op to take part: a frozen op has saved nothing.
  bool refuseIdle(const Match& match, Attempt& attempt) const {
    if (match.rule.pass == FusionPass::Forward) return false;
    for (const NodeId id : match.nodes)
      if (!m_graph.node(id).takesPartInBackward())
        return refuse(attempt, Outcome::ConditionFailed,
                      fmt::format("{} needs no gradient, so it takes no part in backward.", nameOf(m_graph, id)));
    return false;
  }

  /// A recipe quantizes what a GEMM reads; inside a fusion there would be no such tensor.
  bool refuseQuantizer(const Match& match, Attempt& attempt) const {
    for (const NodeId id : match.nodes)
      for (const TensorType type : {TensorType::Input, TensorType::GradOutput})
        if (quantizersOf(m_graph.node(id), type).any() && isMadeInside(match, id, type))
          return refuse(attempt, Outcome::ConditionFailed,
                        fmt::format("The recipe quantizes the {} of {} to {}, so it must stand in memory before the "
                                    "product; inside the fusion it would not exist.",
                                    roleName(type), nameOf(m_graph, id), formatText(id, type)));
    return false;
  }

  bool isMadeInside(const Match& match, NodeId id, TensorType type) const {
    const Node& node = m_graph.node(id);
    if (type == TensorType::Input)
      return match.rule.pass != FusionPass::Backward && contains(match, m_graph.value(node.inputs.front()).producer);
    const auto& uses = m_graph.value(node.outputs.front()).uses;
    return match.rule.pass != FusionPass::Forward && !match.rule.readsLastGradientInGemms &&
           std::ranges::any_of(uses, [&](const Use& use) { return contains(match, use.node); });
  }

  std::string_view formatText(NodeId id, TensorType type) const {
    const TensorQuantizers& quantizers = quantizersOf(m_graph.node(id), type);
    return formatName((quantizers.rowwise ? quantizers.rowwise : quantizers.columnwise)->format);
  }

  /// A gradient that waits is a step of its own; a kernel of several ops computes all of theirs at once.
  bool refuseDelayed(const Match& match, Attempt& attempt) const {
    if (match.rule.pass == FusionPass::Forward) return false;
    for (const NodeId id : match.nodes)
      if (m_graph.node(id).delayedNeeds().anyParameter())
        return refuse(
            attempt, Outcome::ConditionFailed,
            fmt::format("{} has delay_wgrad_compute on: its weight gradient comes after the rest of backward, "
                        "but the fusion would compute it in its place. Switch delay_wgrad_compute off for it.",
                        nameOf(m_graph, id)));
    return false;
  }

  bool refuseTaken(const Match& match, Attempt& attempt) const {
    for (const NodeId id : match.nodes)
      if (const FusedOperation* entry = m_entries.entryOf(id))
        return refuse(attempt, Outcome::TakenByAnother,
                      fmt::format("{} is already part of {} ({}), which comes earlier in the rule book.",
                                  m_graph.node(id).id, entry->rule->name, idsOf(m_graph, entry->nodes)));
    return false;
  }

  bool contains(const Match& match, NodeId id) const { return std::ranges::find(match.nodes, id) != match.nodes.end(); }

  bool refuseSchedule(const Match& match, Attempt& attempt) const {
    const NodeId place = match.nodes.back();
    for (const NodeId id : match.nodes) {
      for (const ValueId input : m_graph.node(id).inputs) {
        const NodeId producer = m_graph.value(input).producer;
        if (producer >= 0 && !contains(match, producer) && m_entries.place(producer) >= place)
          return refuse(attempt, Outcome::OutsideUse,
                        fmt::format("{} needs the result of {}, which runs only after it.", m_graph.node(id).id,
                                    nameOf(m_graph, producer)));
      }
      for (const ValueId output : m_graph.node(id).outputs)
        if (refuseReaders(match, m_graph.value(output), attempt)) return true;
    }
    return false;
  }

  bool refuseReaders(const Match& match, const Value& value, Attempt& attempt) const {
    const bool isReadInside =
        std::ranges::any_of(value.uses, [&](const Use& use) { return contains(match, use.node); });
    if (isReadInside && (value.isOutput || value.uses.size() > 1))
      return refuse(attempt, Outcome::OutsideUse,
                    fmt::format("{} has several readers, one of them inside the fusion; their gradients would have to "
                                "be added in between.",
                                value.name));
    for (const Use& use : value.uses)
      if (!contains(match, use.node) && m_entries.place(use.node) <= match.nodes.back())
        return refuse(attempt, Outcome::OutsideUse,
                      fmt::format("{} reads {} before {} has run.", nameOf(m_graph, use.node), value.name,
                                  m_graph.node(match.nodes.back()).id));
    return false;
  }

  bool refuseKernel(const Match& match, Attempt& attempt) const {
    if (!m_options.capabilities) return false;
    for (const Phase phase : phasesOf(match.rule.pass)) {
      const Verdict verdict = m_options.capabilities({m_graph, match.rule.becomes, phase, match.nodes});
      if (!verdict) return refuse(attempt, Outcome::NoKernel, verdict.reason());
    }
    return false;
  }

  /// TransformerEngine fuses whatever fits its windows; our own chapter also wants a gain.
  static bool refuseUseless(const Match& match, Attempt& attempt) {
    const bool saves = attempt.saving->bytes > 0 || attempt.saving->launches > 0;
    if (saves || match.rule.origin == RuleOrigin::Te) return false;
    return refuse(attempt, Outcome::ConditionFailed, "There is nothing to save: at most one of these ops moves data.");
  }

  static std::vector<Phase> phasesOf(FusionPass pass) {
    switch (pass) {
      case FusionPass::Forward: return {Phase::Forward};
      case FusionPass::Backward: return {Phase::Backward};
      case FusionPass::Joint: return {Phase::Forward, Phase::Backward};
    }
    return {};
  }

  Saving costOf(const FusedOperation& entry, Phase phase, const SavedSet& saved) const {
    const EntryOperands operands =
        phase == Phase::Forward ? forwardOperands(m_graph, entry, saved) : backwardOperands(m_graph, entry);
    return {.bytes = trafficBytes(m_graph, entry, operands), .launches = operands.isView() ? 0 : 1};
  }

  SavedSet keptBy(const FusedOperation& entry) const { return savedTensors(m_graph, {&entry, 1}); }

  SavedSet keptByMembers(const FusedOperation& fusion) const {
    SavedSet kept;
    for (const NodeId id : fusion.nodes) kept.values.merge(keptBy({.nodes = {id}}).values);
    return kept;
  }

  /// Bytes that a joint fusion does not keep for backward, but its ops would.
  std::int64_t keptLess(const Match& match) const {
    const FusedOperation fusion{.rule = &match.rule, .nodes = match.nodes};
    const SavedSet kept = savedWith(fusion);
    std::int64_t bytes = 0;
    for (const ValueId value : keptByMembers(fusion).values)
      if (!kept.values.contains(value)) bytes += m_graph.value(value).spec.bytes();
    return bytes;
  }

  /// What is kept of the members' own tensors, once a joint fusion's choice has replaced the members' contexts.
  SavedSet savedWith(const FusedOperation& fusion) const {
    const SavedSet replaced = keptByMembers(fusion);
    SavedSet saved = keptBy(fusion);
    for (const NodeId id : fusion.nodes)
      for (const ValueId output : m_graph.node(id).outputs)
        if (m_unfusedSaved.values.contains(output) && !replaced.values.contains(output)) saved.values.insert(output);
    return saved;
  }

  Saving savingOf(const Match& match) const {
    const FusedOperation fusion{.rule = &match.rule, .nodes = match.nodes};
    const SavedSet ownSaved = fusion.rule->saves ? savedWith(fusion) : SavedSet{};
    const SavedSet& fusedSaved = fusion.rule->saves ? ownSaved : m_unfusedSaved;
    Saving saving;
    for (const Phase phase : phasesOf(match.rule.pass)) {
      for (const NodeId id : match.nodes) {
        const Saving basic = costOf({.nodes = {id}}, phase, m_unfusedSaved);
        saving.bytes += basic.bytes;
        saving.launches += basic.launches;
      }
      const Saving fused = costOf(fusion, phase, fusedSaved);
      saving.bytes -= fused.bytes;
      saving.launches -= fused.launches;
    }
    return saving;
  }

  const Graph& m_graph;
  const FusionOptions& m_options;
  const SavedSet& m_unfusedSaved;
  EntryList m_entries;
  std::vector<Attempt>& m_attempts;
};

/// Fusions at the places of their last ops, basic ops in between.
std::vector<FusedOperation> toList(const Graph& graph, const EntryList& entries, bool backwardOnly) {
  std::vector<FusedOperation> list;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const FusedOperation* entry = entries.entryOf(id);
    if (entry && entry->nodes.back() == id) list.push_back(*entry);
    if (!entry && (!backwardOnly || graph.node(id).takesPartInBackward())) list.push_back({.nodes = {id}});
  }
  return list;
}

Result<void> checkSwitches(const RuleCatalog& rules, const std::vector<std::string>& entries, std::string_view verb) {
  for (const std::string& entry : entries) {
    const std::string name = entry.substr(0, entry.find('@'));
    if (rules.find(name)) continue;
    std::vector<std::string> names;
    for (const FusionRule* rule : rules.all()) names.push_back(rule->name);
    const std::string near = nearest(name, names);
    return Error{.message = fmt::format("\"{}\" {} a rule that does not exist{} `fuseline rules` lists them.", entry,
                                        verb, near.empty() ? "." : fmt::format("; did you mean {}?", near)),
                 .kind = ErrorKind::Usage};
  }
  return {};
}

}  // namespace

std::string_view phaseName(Phase phase) { return phase == Phase::Forward ? "forward" : "backward"; }

std::string_view outcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::Fused: return "fused";
    case Outcome::BrokenChain: return "broken chain";
    case Outcome::OutsideUse: return "outside use";
    case Outcome::ConditionFailed: return "condition failed";
    case Outcome::TakenByAnother: return "taken by another fusion";
    case Outcome::NoKernel: return "no kernel on this device";
    case Outcome::SwitchedOff: return "switched off";
    case Outcome::OnRequest: return "on request";
  }
  return "?";
}

std::string FusedOperation::name(const Graph& graph) const {
  return isFused() ? rule->name : graph.node(nodes.front()).operation->name;
}

std::string FusedOperation::note(const Graph& graph) const {
  std::vector<std::string> notes;
  for (const NodeId id : nodes)
    if (std::string own = graph.node(id).note(); !own.empty()) notes.push_back(std::move(own));
  return fmt::format("{}", fmt::join(notes, "; "));
}

FusionReport unfused(const Graph& graph) {
  const EntryList none(graph);
  FusionReport report{.forward = toList(graph, none, false)};
  if (graph.pass() == PassKind::Training) report.backward = toList(graph, none, true);
  return report;
}

Result<FusionReport> fuse(const Graph& graph, const FusionOptions& options) {
  const RuleCatalog& rules = options.rules ? *options.rules : builtinRules();
  const RuleSwitches& switches = options.switches;
  if (Result<void> off = checkSwitches(rules, switches.without, "switches off"); !off) return off.error();
  if (Result<void> on = checkSwitches(rules, switches.with, "asks for"); !on) return on.error();

  FusionReport report = unfused(graph);
  report.book = options.book;
  const SavedSet saved = savedTensors(graph, report.backward);
  const bool isTraining = graph.pass() == PassKind::Training;
  const auto run = [&](FusionPass pass, EntryList entries) {
    return PassFuser(graph, options, saved, std::move(entries), report.attempts).apply(rules.rules(pass));
  };

  EntryList joint(graph);
  if (isTraining) joint = run(FusionPass::Joint, std::move(joint));
  report.forward = toList(graph, run(FusionPass::Forward, joint), false);
  if (isTraining) report.backward = toList(graph, run(FusionPass::Backward, joint), true);
  return report;
}

namespace {

/// Position of every op's entry in the list; -1 where it is missing. An op that stands twice is reported.
Verdict placesOf(const Graph& graph, const std::vector<FusedOperation>& list, std::vector<int>& places) {
  places.assign(graph.nodes().size(), -1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const NodeId id : list[i].nodes) {
      int& place = places[static_cast<std::size_t>(id)];
      if (place >= 0) return Verdict::no(fmt::format("{} stands in two entries.", nameOf(graph, id)));
      place = static_cast<int>(i);
    }
  }
  return Verdict::yes();
}

Verdict verifyOrder(const Graph& graph, const std::vector<int>& places) {
  for (const Value& value : graph.values()) {
    if (value.producer < 0) continue;
    const int from = places[static_cast<std::size_t>(value.producer)];
    for (const Use& use : value.uses) {
      const int to = places[static_cast<std::size_t>(use.node)];
      if (from >= 0 && to >= 0 && from > to)
        return Verdict::no(fmt::format("{} runs before {}, whose result it reads.", nameOf(graph, use.node),
                                       nameOf(graph, value.producer)));
    }
  }
  return Verdict::yes();
}

Verdict verifyList(const Graph& graph, const std::vector<FusedOperation>& list, Phase phase) {
  std::vector<int> places;
  if (Verdict once = placesOf(graph, list, places); !once) return once;
  for (NodeId id = 0; id < static_cast<NodeId>(places.size()); ++id) {
    const bool isWanted = phase == Phase::Forward || graph.node(id).takesPartInBackward();
    if (isWanted && places[static_cast<std::size_t>(id)] < 0)
      return Verdict::no(fmt::format("{} is missing from the {} list.", nameOf(graph, id), phaseName(phase)));
  }
  return verifyOrder(graph, places);
}

}  // namespace

Verdict verifyExpansion(const Graph& graph, const FusionReport& report) {
  if (Verdict forward = verifyList(graph, report.forward, Phase::Forward); !forward) return forward;
  return verifyList(graph, report.backward, Phase::Backward);
}

}  // namespace fuseline
