// Lists the tensors of a plan that can be captured, and the fusion because of which each other one is never stored.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/capturable_tensors.h"

#include "core/support/text.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// The ops that make a tensor and those that read it.
struct TensorTouches {
  std::vector<NodeId> makers;
  std::vector<NodeId> readers;
  Phase phase = Phase::Forward;  // in which it is made

  /// Each once, the makers first.
  std::vector<NodeId> all() const {
    std::vector<NodeId> nodes;
    for (const std::vector<NodeId>* list : {&makers, &readers})
      for (const NodeId id : *list)
        if (std::ranges::find(nodes, id) == nodes.end()) nodes.push_back(id);
    return nodes;
  }
};
using TouchesByName = std::unordered_map<std::string, TensorTouches>;

/// Op of a step's member: the op itself, or the op that it quantizes for. Nothing if the step handles several tensors.
std::optional<NodeId> nodeBehind(const Step& step, int member) {
  const auto index = static_cast<std::size_t>(member);
  if (index < step.nodes.size()) return step.nodes[index];
  const auto work = std::ranges::find(step.copies, member, &QuantizeWork::member);
  return work == step.copies.end() ? std::nullopt : std::optional(work->reader);
}

class TouchFinder {
 public:
  TouchFinder(const Graph& graph, const Plan& plan) : m_graph(graph), m_plan(plan) {}

  TouchesByName find() {
    for (const Step& step : m_plan.steps) addOperands(step);
    for (const Step& step : m_plan.steps) addPorts(step);
    for (const GraphOutput& output : m_graph.outputs()) addOutput(output);
    return std::move(m_touches);
  }

 private:
  void addOperands(const Step& step) {
    for (const StepOperand& operand : step.operands) {
      TensorTouches& touch = m_touches[m_plan.tensors[static_cast<std::size_t>(operand.tensor)].name];
      const bool isMade = operand.access != OperandAccess::Read;
      if (isMade) touch.phase = step.phase;
      if (const auto node = nodeBehind(step, operand.key.member))
        (isMade ? touch.makers : touch.readers).push_back(*node);
    }
  }

  /// Views, and the addends of a gradient sum, are no operands of the ops that produce them.
  void addPorts(const Step& step) {
    const bool isForward = step.phase == Phase::Forward;
    for (const NodeId id : step.nodes) {
      const Node& node = m_graph.node(id);
      for (const ValueId value : isForward ? node.outputs : node.inputs) {
        TensorTouches& touch = touchOf(value, step.phase);
        touch.makers.push_back(id);
        touch.phase = step.phase;
      }
      for (const ValueId value : isForward ? node.inputs : node.outputs)
        touchOf(value, step.phase).readers.push_back(id);
    }
  }

  /// Touches of the value, or of its gradient.
  TensorTouches& touchOf(ValueId value, Phase phase) {
    return m_touches[(phase == Phase::Forward ? "" : "grad.") + capturableName(m_graph, m_graph.value(value))];
  }

  /// Plans name it, and the gradient that comes from outside, after the output.
  void addOutput(const GraphOutput& output) {
    const NodeId producer = m_graph.value(output.value).producer;
    if (producer < 0) return;
    TensorTouches& made = m_touches[output.name];
    if (made.makers.empty()) made.makers.push_back(producer);
    m_touches["grad." + output.name].readers.push_back(producer);
  }

  const Graph& m_graph;
  const Plan& m_plan;
  TouchesByName m_touches;
};

bool isCopyOnHost(const PlanTensor& tensor) {
  return tensor.role == TensorRole::Offloaded || tensor.role == TensorRole::Reloaded;
}

bool isStoredIn(const Plan& plan, const PlanTensor& tensor) {
  const Storage& storage = plan.storages[static_cast<std::size_t>(tensor.storage)];
  if (tensor.isInitialOnly) return false;
  return storage.isPersistent || storage.firstStep >= 0;
}

std::string kindOf(const PlanTensor& tensor) {
  if (tensor.spec.quantized) return "quantized copy";
  switch (tensor.role) {
    case TensorRole::Input: return "input";
    case TensorRole::Parameter: return "parameter";
    case TensorRole::Output: return "output";
    case TensorRole::OutputGradient: return "output gradient";
    case TensorRole::Gradient: return "gradient";
    case TensorRole::InputGradient: return "input gradient";
    case TensorRole::ParameterGradient: return "parameter gradient";
    case TensorRole::MainGradient: return "main_grad buffer";
    case TensorRole::QuantizerState: return "quantizer state";
    case TensorRole::OptimizerState: return "optimizer state";
    default: return "intermediate";
  }
}

class CaptureList {
 public:
  CaptureList(const Analysis& analysis, const Plan& plan)
      : m_graph(analysis.graph()),
        m_fusionsOf(m_graph.nodes().size()),
        m_plan(plan),
        m_touches(TouchFinder(m_graph, plan).find()),
        m_unfusedTouches(TouchFinder(m_graph, analysis.unfusedPlan()).find()) {
    for (const PlanTensor& tensor : plan.tensors)
      if (isStoredIn(plan, tensor)) m_stored.insert(tensor.name);
    for (const Attempt& attempt : analysis.report.attempts)
      if (attempt.outcome == Outcome::Fused)
        for (const NodeId id : attempt.nodes) m_fusionsOf[static_cast<std::size_t>(id)].push_back(&attempt);
  }

  std::vector<CapturableTensor> make(const Plan& unfusedPlan) {
    for (const Plan* plan : {&unfusedPlan, &m_plan})
      for (const PlanTensor& tensor : plan->tensors)
        if (!isCopyOnHost(tensor) && isStoredIn(*plan, tensor) && m_listed.insert(tensor.name).second)
          m_tensors.push_back(entryOf(tensor));
    return std::move(m_tensors);
  }

 private:
  CapturableTensor entryOf(const PlanTensor& tensor) const {
    const bool isStored = m_stored.contains(tensor.name);
    const TensorTouches touches = touchesFor(tensor.name, isStored);
    CapturableTensor entry{
        .name = tensor.name, .spec = tensor.spec, .kind = kindOf(tensor), .owner = {}, .nodes = touches.all()};
    entry.spec.quantized.reset();
    if (!entry.nodes.empty()) entry.owner = m_graph.node(entry.nodes.front()).owner;
    if (!isStored) entry.fusedAway = fusionOf(touches);
    return entry;
  }

  TensorTouches touchesFor(const std::string& name, bool isStored) const {
    const TouchesByName& byName = isStored ? m_touches : m_unfusedTouches;
    const auto found = byName.find(name);
    return found == byName.end() ? TensorTouches() : found->second;
  }

  /// The fusion around the tensor: of the pass that produces it, if there is one, and with the most producers and
  /// consumers of the tensor.
  FusedAway fusionOf(const TensorTouches& touches) const {
    const std::vector<NodeId> nodes = touches.all();
    const Attempt* best = nullptr;
    std::pair<bool, std::ptrdiff_t> highest{false, 0};
    for (const NodeId id : nodes)
      for (const Attempt* attempt : m_fusionsOf[static_cast<std::size_t>(id)]) {
        const std::pair rank{isOfPhase(*attempt->rule, touches.phase), sharedWith(*attempt, nodes)};
        if (rank > highest) best = attempt;
        highest = std::max(highest, rank);
      }
    if (!best) return {.fusion = "the backward pass of the fused plan", .place = {}};
    std::vector<std::string> ids;
    for (const NodeId id : best->nodes) ids.push_back(m_graph.node(id).id);
    return {.fusion = fmt::format("{}({})", best->rule->name, fmt::join(ids, ", ")),
            .place = fmt::format("{}@{}", best->rule->name, ids.front())};
  }

  static std::ptrdiff_t sharedWith(const Attempt& attempt, const std::vector<NodeId>& nodes) {
    return std::ranges::count_if(
        nodes, [&](NodeId id) { return std::ranges::find(attempt.nodes, id) != attempt.nodes.end(); });
  }

  static bool isOfPhase(const FusionRule& rule, Phase phase) {
    const bool isForward = rule.pass == FusionPass::Forward || rule.pass == FusionPass::ForwardQuantization;
    return rule.pass == FusionPass::Joint || isForward == (phase == Phase::Forward);
  }

  const Graph& m_graph;
  std::vector<std::vector<const Attempt*>> m_fusionsOf;  // by op: those that happened
  const Plan& m_plan;
  TouchesByName m_touches;
  TouchesByName m_unfusedTouches;
  std::unordered_set<std::string_view> m_stored;
  std::unordered_set<std::string_view> m_listed;
  std::vector<CapturableTensor> m_tensors;
};

Error unknownTensor(const Graph& graph, std::span<const CapturableTensor> all, const std::string& name) {
  std::vector<std::string> names;
  for (const CapturableTensor& tensor : all) names.push_back(tensor.name);
  for (const Node& node : graph.nodes()) names.insert(names.end(), {node.id, node.owner});
  return {fmt::format("{}: there is no tensor and no op of this name{}", name, didYouMean(nearest(name, names))),
          ErrorKind::Usage};
}

void choose(const CapturableTensor& tensor, TensorChoice& choice) {
  std::vector<CapturableTensor>& list = tensor.isStored() ? choice.tensors : choice.missing;
  if (std::ranges::find(list, tensor.name, &CapturableTensor::name) == list.end()) list.push_back(tensor);
}

bool isTouchedBy(const Graph& graph, const CapturableTensor& tensor, const std::string& op) {
  return std::ranges::any_of(tensor.nodes, [&](NodeId id) { return graph.node(id).isAt(op); });
}

Result<void> chooseByName(const Graph& graph, std::span<const CapturableTensor> all, const std::string& name,
                          TensorChoice& choice) {
  const auto exact = std::ranges::find(all, name, &CapturableTensor::name);
  if (exact != all.end()) {
    if (!exact->isStored()) return Error{neverStoredText(*exact), ErrorKind::Usage};
    choose(*exact, choice);
    return {};
  }
  bool isAny = false;
  for (const CapturableTensor& tensor : all) {
    if (!isTouchedBy(graph, tensor, name)) continue;
    choose(tensor, choice);
    isAny = true;
  }
  return isAny ? Result<void>() : unknownTensor(graph, all, name);
}

}  // namespace

std::string capturableName(const Graph& graph, const Value& value) {
  if (value.producer < 0) return value.name;
  const Node& node = graph.node(value.producer);
  return fmt::format("{}:{}", node.id, node.operation->outputs[static_cast<std::size_t>(value.port)].name);
}

std::vector<CapturableTensor> capturableTensors(const Analysis& analysis, const Plan& plan) {
  return CaptureList(analysis, plan).make(analysis.unfusedPlan());
}

std::int64_t TensorChoice::bytes() const {
  std::int64_t bytes = 0;
  for (const CapturableTensor& tensor : tensors) bytes += tensor.spec.bytes();
  return bytes;
}

Result<TensorChoice> chooseTensors(const Graph& graph, std::span<const CapturableTensor> all,
                                   std::span<const std::string> names) {
  TensorChoice choice;
  for (const std::string& name : names)
    if (Result<void> chosen = chooseByName(graph, all, name, choice); !chosen) return chosen.error();
  return choice;
}

std::string neverStoredText(const CapturableTensor& tensor) {
  return fmt::format("{} is never stored: {} needs no memory for it.", tensor.name, tensor.fusedAway->fusion);
}

Result<void> checkCaptureSize(const TensorChoice& choice, std::int64_t limitBytes) {
  if (choice.bytes() <= limitBytes) return {};
  const auto largest =
      std::ranges::max_element(choice.tensors, {}, [](const CapturableTensor& tensor) { return tensor.spec.bytes(); });
  return Error{fmt::format("{} tensor{} would take {}, but a capture may take {}; the largest, {}, takes {}.",
                           choice.tensors.size(), choice.tensors.size() == 1 ? "" : "s", formatBytes(choice.bytes()),
                           formatBytes(limitBytes), largest->name, formatBytes(largest->spec.bytes())),
               ErrorKind::Usage};
}

}  // namespace fuseline
