// Makes plans: one step an entry, a gradient sum where a tensor branches, views without memory, an arena by lifetime.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include "core/fusion/operation_cost.h"
#include "core/ops/grouped_form.h"
#include "core/plan/handed_copies.h"
#include "core/plan/memory_plan.h"
#include "core/plan/offload_steps.h"
#include "core/support/text.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <ranges>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// Where a tensor of the plan comes from: a value, a node's parameter or residual, or a gradient of one of these.
enum class Subject {
  Value,
  Parameter,
  Residual,
  ValueGradient,
  PartialGradient,
  ParameterGradient,
  RowwiseCopy,
  ColumnwiseCopy,
  QuantizerScale,
  AmaxHistory
};
struct TensorKey {
  Subject subject;
  int owner = 0;  // value or node
  int slot = 0;
};

/// The tensor of every key. What belongs to one value or node lies together, so that a walk along the graph finds it
/// in the cache, however many ops there are.
class TensorIndex {
 public:
  explicit TensorIndex(const Graph& graph) {
    std::size_t size = 2 * graph.values().size();
    m_firstOfNode.reserve(graph.nodes().size());
    for (const Node& node : graph.nodes()) {
      m_firstOfNode.push_back(size);
      m_numParameters.push_back(static_cast<int>(node.parameters.size()));
      size += 2 * node.parameters.size() + node.residuals.size() + node.inputs.size();
      m_numResiduals.push_back(static_cast<int>(node.residuals.size()));
      m_numInputs.push_back(static_cast<int>(node.inputs.size()));
      m_numQuantized.push_back(node.quantizers.any() ? kNumTensorTypes * numParts(node) : 0);
      size += static_cast<std::size_t>(kQuantizedSubjects * m_numQuantized.back());
    }
    m_tensors.assign(size, -1);
  }

  int& operator[](const TensorKey& key) { return m_tensors[place(key)]; }
  int operator[](const TensorKey& key) const { return m_tensors[place(key)]; }

  /// The slot of a part of one of the three tensors of an op with quantizers: a group of rows, or one of many weights.
  static int partSlot(const Node& node, TensorType type, int part) {
    return static_cast<int>(type) * numParts(node) + part;
  }

 private:
  std::size_t place(const TensorKey& key) const {
    const auto owner = static_cast<std::size_t>(key.owner);
    if (key.subject == Subject::Value) return 2 * owner;
    if (key.subject == Subject::ValueGradient) return 2 * owner + 1;
    return m_firstOfNode[owner] + static_cast<std::size_t>(firstOf(key.subject, owner) + key.slot);
  }

  /// A node has its parameters, their gradients, its residuals, the gradients of its inputs and, if it has quantizers,
  /// two copies, a scale and a history for each part of three tensors.
  int firstOf(Subject subject, std::size_t node) const {
    switch (subject) {
      case Subject::Parameter: return 0;
      case Subject::ParameterGradient: return m_numParameters[node];
      case Subject::Residual: return 2 * m_numParameters[node];
      case Subject::PartialGradient: return firstGradient(node);
      default: break;
    }
    const int subjectBehind = static_cast<int>(subject) - static_cast<int>(Subject::RowwiseCopy);
    return firstGradient(node) + m_numInputs[node] + subjectBehind * m_numQuantized[node];
  }

  int firstGradient(std::size_t node) const { return 2 * m_numParameters[node] + m_numResiduals[node]; }

  static int numParts(const Node& node) { return static_cast<int>(std::max<std::int64_t>(rowGroups(node), 1)); }

  static constexpr int kQuantizedSubjects = 4;
  static constexpr int kNumTensorTypes = 3;

  std::vector<std::size_t> m_firstOfNode;
  std::vector<int> m_numParameters;
  std::vector<int> m_numResiduals;
  std::vector<int> m_numInputs;
  std::vector<int> m_numQuantized;
  std::vector<int> m_tensors;
};

Subject copySubject(Direction direction) {
  return direction == Direction::Rowwise ? Subject::RowwiseCopy : Subject::ColumnwiseCopy;
}

std::string joinedIds(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<std::string> ids;
  for (const NodeId id : nodes) ids.push_back(graph.node(id).id);
  return fmt::format("{}", fmt::join(ids, ", "));
}

/// Storages of inputs that nobody needs after an elementwise step, whose outputs may take them.
class EndingInputs {
 public:
  /// dying: storages whose last step this is.
  EndingInputs(const Plan& plan, const Step& step, const std::vector<int>& dying) {
    if (dying.empty() || (step.kernel != "elementwise" && step.kernel != "accumulate")) return;
    const std::set<int> ending(dying.begin(), dying.end());
    for (const StepOperand& operand : step.operands) {
      const int storage = plan.tensors[static_cast<std::size_t>(operand.tensor)].storage;
      if (operand.access == OperandAccess::Read && ending.contains(storage))
        listOf(plan.spec(operand)).push_back(storage);
    }
  }

  /// The first that a tensor of this spec may take; -1 when there is none.
  int take(const TensorSpec& spec) {
    std::deque<int>& storages = listOf(spec);
    while (!storages.empty()) {
      const int storage = storages.front();
      storages.pop_front();
      if (m_taken.insert(storage).second) return storage;
    }
    return -1;
  }

  bool isTaken(int storage) const { return m_taken.contains(storage); }

 private:
  /// Tensors of one step have few specs.
  std::deque<int>& listOf(const TensorSpec& spec) {
    const auto list = std::ranges::find(m_lists, spec, &std::pair<TensorSpec, std::deque<int>>::first);
    return list != m_lists.end() ? list->second : m_lists.emplace_back(spec, std::deque<int>()).second;
  }

  std::vector<std::pair<TensorSpec, std::deque<int>>> m_lists;
  std::set<int> m_taken;
};

class Planner {
 public:
  Planner(const Graph& graph, const FusionReport& report, const PlanOptions& options)
      : m_graph(graph),
        m_report(report),
        m_options(options),
        m_saved(savedTensors(graph, report.backward)),
        m_expected(countContributions(graph)),
        m_states(quantizerStates(graph)),
        m_handOvers(report.handOvers.begin(), report.handOvers.end()),
        m_handed(graph, report),
        m_index(graph) {}

  Plan make() {
    addInputsAndParameters();
    addQuantizerStates();
    for (const FusedOperation& entry : m_report.forward) addForwardStep(entry);
    nameOutputs();
    if (m_graph.pass() == PassKind::Training) {
      addScaleUpdate(Phase::Forward);
      addBackward();
    }
    if (!m_report.handOvers.empty()) dropUnreadSources();
    addOffloadSteps(m_graph, m_plan, m_viewOf);
    assignStorages();
    placeStorages();
    return std::move(m_plan);
  }

 private:
  // Tensors ------------------------------------------------------------------------------------------------------

  int addTensor(std::string name, TensorSpec spec, TensorRole role) {
    const auto index = static_cast<int>(m_plan.tensors.size());
    m_plan.tensors.push_back({.name = std::move(name), .spec = std::move(spec), .role = role});
    m_viewOf.push_back(index);
    return index;
  }

  int addTensor(TensorKey key, std::string name, TensorSpec spec, TensorRole role) {
    return m_index[key] = addTensor(std::move(name), std::move(spec), role);
  }

  int find(TensorKey key) const { return m_index[key]; }

  /// The tensor whose memory this one shows.
  int root(int tensor) const {
    while (m_viewOf[at(tensor)] != tensor) tensor = m_viewOf[at(tensor)];
    return tensor;
  }

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  void addInputsAndParameters() {
    for (const ValueId id : m_graph.inputs())
      addTensor({Subject::Value, id, 0}, m_graph.value(id).name, m_graph.value(id).spec, TensorRole::Input);
    for (NodeId id = 0; id < static_cast<NodeId>(m_graph.nodes().size()); ++id) {
      const Node& node = m_graph.node(id);
      for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
        addTensor({Subject::Parameter, id, slot}, node.parameterName(slot), node.parameters[at(slot)],
                  TensorRole::Parameter);
    }
  }

  TensorKey keyOf(const std::vector<NodeId>& nodes, const OperandKey& key) const {
    const NodeId id = nodes[at(key.member)];
    const Node& node = m_graph.node(id);
    switch (key.kind) {
      case OperandKind::Input: return {Subject::Value, node.inputs[at(key.slot)], 0};
      case OperandKind::Output: return {Subject::Value, node.outputs[at(key.slot)], 0};
      case OperandKind::Parameter: return {Subject::Parameter, id, key.slot};
      case OperandKind::Residual: return {Subject::Residual, id, key.slot};
      case OperandKind::GradOutput: return {Subject::ValueGradient, node.outputs[at(key.slot)], 0};
      case OperandKind::GradInput: return {Subject::PartialGradient, id, key.slot};
      case OperandKind::GradParameter: return {Subject::ParameterGradient, id, key.slot};
    }
    assert(false);
    return {};
  }

  std::string tensorName(const Node& node, const OperandKey& key) const {
    switch (key.kind) {
      case OperandKind::Output: return node.id + ":" + node.operation->outputs[at(key.slot)].name;
      case OperandKind::Residual: return node.id + ":" + node.operation->residuals[at(key.slot)].name;
      case OperandKind::GradParameter: return node.parameterGradientName(key.slot);
      case OperandKind::GradInput: return partialName(node, key.slot);
      default: assert(false); return {};
    }
  }

  /// The gradient of a value has the value's name; where several readers contribute, each part also names its reader,
  /// and one that reads the value more than once the input.
  std::string partialName(const Node& node, int slot) const {
    const ValueId id = node.inputs[at(slot)];
    const std::string name = "grad." + valueName(m_graph.value(id));
    if (m_expected[at(id)] == 1) return name;
    if (std::ranges::count(node.inputs, id) == 1) return fmt::format("{}@{}", name, node.id);
    return fmt::format("{}@{}:{}", name, node.id, node.operation->inputs[at(slot)].name);
  }

  std::string valueName(const Value& value) const {
    if (value.producer < 0) return value.name;
    const Node& node = m_graph.node(value.producer);
    return node.id + ":" + node.operation->outputs[at(value.port)].name;
  }

  TensorRole roleOf(const std::vector<NodeId>& nodes, const OperandKey& key) const {
    if (key.kind == OperandKind::GradParameter)
      return m_graph.node(nodes[at(key.member)]).gradientSink(key.slot) == GradientSink::Accumulate
                 ? TensorRole::MainGradient
                 : TensorRole::ParameterGradient;
    if (key.kind != OperandKind::GradInput) return TensorRole::Intermediate;
    const ValueId id = m_graph.node(nodes[at(key.member)]).inputs[at(key.slot)];
    return m_graph.value(id).producer < 0 && m_expected[at(id)] == 1 ? TensorRole::InputGradient : TensorRole::Gradient;
  }

  int tensorFor(const std::vector<NodeId>& nodes, const OperandKey& key) {
    const TensorKey tensorKey = keyOf(nodes, key);
    if (const int known = find(tensorKey); known >= 0) return known;
    const Node& node = m_graph.node(nodes[at(key.member)]);
    return addTensor(tensorKey, tensorName(node, key), m_graph.spec(nodes[at(key.member)], key.kind, key.slot),
                     roleOf(nodes, key));
  }

  // Steps --------------------------------------------------------------------------------------------------------

  void addStep(const FusedOperation& entry, Phase phase, const EntryOperands& operands) {
    if (isOnlyHanded(entry, phase)) return addCopies(phase, passedOn(entry, phase), sourceOf(entry, phase));
    Step step = makeStep(entry, phase, operands);
    countWork(step, entry);
    m_plan.steps.push_back(std::move(step));
    if (phase == Phase::Backward)
      for (const NodeId id : entry.nodes) addContributions(id);
  }

  Step makeStep(const FusedOperation& entry, Phase phase, const EntryOperands& operands) {
    Step step{.phase = phase, .nodes = entry.nodes};
    step.name = entry.isFused() ? fmt::format("{}({})", entry.rule->name, joinedIds(m_graph, entry.nodes))
                                : m_graph.node(entry.nodes.front()).id;
    step.rule = entry.isFused() ? entry.rule->name : "";
    step.note = noteOf(entry, phase);
    step.kernel = entry.kernelName(m_graph);
    step.isView = operands.isView();
    for (const OperandUse& use : operands.operands) addOperand(step, entry, use);
    for (const ViewOperand& view : operands.views) addView(entry.nodes, view);
    return step;
  }

  void addOperand(Step& step, const FusedOperation& entry, const OperandUse& use) {
    const std::optional<GemmOperand> operand = gemmOperand(m_graph, entry, use.key);
    if (use.access == OperandAccess::Read && operand && quantizersOf(m_graph.node(operand->node), operand->type).any())
      return addGemmOperands(step, entry, use.key, *operand);
    step.operands.push_back({.key = use.key, .tensor = tensorFor(entry.nodes, use.key), .access = use.access});
  }

  // Quantized operands -------------------------------------------------------------------------------------------

  /// What each GEMM of the step reads: its copy, or the tensor itself.
  void addGemmOperands(Step& step, const FusedOperation& entry, const OperandKey& key, const GemmOperand& operand) {
    const bool isHanded = takeHandedCopies(operand);
    const int plain = isHanded ? -1 : tensorFor(entry.nodes, key);
    const bool isGradient = operand.type == TensorType::GradOutput;
    if (!isHanded && (step.phase == Phase::Forward || isGradient)) addCopies(step.phase, operand, plain);
    for (const Direction direction : readDirections(step.phase, operand))
      step.operands.push_back({.key = key, .tensor = readCopy(operand, direction, plain), .direction = direction});
    if (isGradient && isReadBesideGemms(m_graph.node(operand.node)))
      step.operands.push_back({.key = key, .tensor = plain});
  }

  /// Biases and their scales have gradients that no GEMM makes.
  static bool isReadBesideGemms(const Node& node) {
    const auto& [inputs, parameters] = node.needs;
    return std::find(inputs.begin() + 1, inputs.end(), true) != inputs.end() ||
           std::find(parameters.begin() + numWeights(node), parameters.end(), true) != parameters.end();
  }

  std::vector<Direction> readDirections(Phase phase, const GemmOperand& operand) const {
    if (phase == Phase::Forward) return {Direction::Rowwise};
    if (operand.type != TensorType::GradOutput) return {Direction::Columnwise};
    const Node& node = m_graph.node(operand.node);
    std::vector<Direction> directions;
    if (node.needs.inputs.front()) directions.push_back(Direction::Rowwise);
    if (numWeights(node) > 0 && node.needs.parameters.front()) directions.push_back(Direction::Columnwise);
    return directions;
  }

  int readCopy(const GemmOperand& operand, Direction direction, int plain) const {
    const TensorQuantizers& quantizers = quantizersOf(m_graph.node(operand.node), operand.type);
    const bool isDequantized = quantizers.isDequantizedInBackward && !quantizers.of(direction);
    const Direction read = isDequantized ? Direction::Rowwise : direction;
    const int copy = find(copyKey(operand, read));
    return copy < 0 ? plain : copy;
  }

  TensorKey copyKey(const GemmOperand& operand, Direction direction) const {
    return {copySubject(direction), operand.node, partSlot(operand)};
  }

  int partSlot(const GemmOperand& operand, int part = 0) const {
    return TensorIndex::partSlot(m_graph.node(operand.node), operand.type, operand.slot + part);
  }

  /// Groups of rows that are quantized by themselves inside one tensor; 0: the tensor is no group's or one group's.
  std::int64_t groupsIn(const GemmOperand& operand) const {
    const Node& node = m_graph.node(operand.node);
    const bool isOfOneGroup = operand.type == TensorType::Weight && numWeights(node) > 1;
    return isOfOneGroup ? 0 : rowGroups(node);
  }

  /// The directions that the GEMMs of forward and backward contract this tensor in.
  bool isCopyNeeded(const GemmOperand& operand, Direction direction) const {
    if (passesOnQuantized(m_graph.node(operand.node), operand.type)) return isHandedCopyNeeded(operand, direction);
    const GradientNeeds& needs = m_graph.node(operand.node).needs;
    if (operand.type == TensorType::GradOutput) {
      const std::vector<Direction> read = readDirections(Phase::Backward, operand);
      return std::ranges::find(read, direction) != read.end();
    }
    if (direction == Direction::Rowwise) return true;
    return operand.type == TensorType::Input ? needs.parameters.front() : needs.inputs.front();
  }

  /// A step that makes all copies at once, before the first GEMM that reads one.
  void addCopies(Phase phase, const GemmOperand& operand, int source) {
    if (hasCopies(operand)) return;
    if (m_handOvers.contains({operand.node, operand.type, false})) return addCopiesToMaker(operand, source);
    Step step{.kernel = "quantize", .phase = phase};
    step.operands.push_back({.key = {0, OperandKind::Input, 0}, .tensor = source});
    if (!addWork(step, operand, source, 0, {0, OperandKind::Input, 0})) return;
    if (m_handOvers.contains({operand.node, operand.type, true}))
      step.operands.push_back({.key = {0, OperandKind::Input, 2}, .tensor = amaxFromMaker(operand, source)});
    step.name = step.copies.front().name;
    step.runsOnce = operand.type == TensorType::Weight && m_graph.pass() == PassKind::Forward;
    if (step.runsOnce) keepResults(step);
    countBytes(step);
    m_plan.steps.push_back(std::move(step));
  }

  /// Is there anything to quantize?
  bool addWork(Step& step, const GemmOperand& operand, int source, int member, const OperandKey& key) {
    const std::size_t before = step.operands.size();
    step.copies.push_back({.name = quantizeName(operand),
                           .reader = operand.node,
                           .type = operand.type,
                           .slot = operand.slot,
                           .quantizers = {},
                           .member = member,
                           .source = key,
                           .spec = m_plan.tensors[at(source)].spec});
    for (const Direction direction : {Direction::Rowwise, Direction::Columnwise}) addCopy(step, operand, direction);
    const bool isAny = step.operands.size() > before;
    if (!isAny) step.copies.pop_back();
    if (isAny) addGroupSizes(step, operand);
    if (isAny) addStateOperands(step, operand);
    return isAny;
  }

  /// Another step of the same op may have asked for them before.
  bool hasCopies(const GemmOperand& operand) const {
    return find(copyKey(operand, Direction::Rowwise)) >= 0 || find(copyKey(operand, Direction::Columnwise)) >= 0;
  }

  /// The step that makes the tensor also makes its copies.
  void addCopiesToMaker(const GemmOperand& operand, int source) {
    const int made = root(source);
    Step& maker = makerOf(made);
    if (!addWork(maker, operand, source, nextMember(maker), findWrite(maker, made)->key)) return;
    QuantizeWork& work = maker.copies.back();
    const bool hasScale = find({Subject::QuantizerScale, operand.node, partSlot(operand)}) >= 0;
    work.isUnrounded = hasScale && (isOfActivation(maker, work.source) || isOfNorm(maker, work.source));
    addNote(maker, fmt::format("quantizes {}", quantizedName(m_graph.node(operand.node), operand.type)));
  }

  /// TransformerEngine's gates that scale their rows ignore the quantizers of their neighbours.
  bool isOfActivation(const Step& maker, const OperandKey& result) const {
    const Node& node = m_graph.node(maker.nodes[at(result.member)]);
    return node.operation->category == "Activation" && node.inputs.size() == 1;
  }

  bool isOfNorm(const Step& maker, const OperandKey& result) const {
    const Node& node = m_graph.node(maker.nodes[at(result.member)]);
    return maker.phase == Phase::Forward && node.operation->category == "Normalization";
  }

  Step& makerOf(int tensor) {
    const auto maker = std::ranges::find_if(std::views::reverse(m_plan.steps),
                                            [&](const Step& step) { return findWrite(step, tensor) != nullptr; });
    assert(maker != m_plan.steps.rend());
    return *maker;
  }

  static int nextMember(const Step& maker) { return static_cast<int>(maker.nodes.size() + maker.copies.size()); }

  static void addNote(Step& step, const std::string& note) { step.note += (step.note.empty() ? "" : "; ") + note; }

  /// The step that makes the tensor also finds its amax, for all who quantize it.
  int amaxFromMaker(const GemmOperand& operand, int source) {
    const int made = root(source);
    const auto [known, isNew] = m_amaxOf.try_emplace(made, -1);
    if (!isNew) return known->second;
    const PlanTensor& tensor = m_plan.tensors[at(made)];
    const TensorSpec spec = tensor.spec;
    const TensorRole role = operand.type == TensorType::GradOutput ? TensorRole::Gradient : TensorRole::Intermediate;
    known->second = addTensor("amax:" + tensor.name, scaleSpec(), role);
    Step& maker = makerOf(made);
    const int member = nextMember(maker);
    maker.copies.push_back({.name = quantizeName(operand),
                            .reader = operand.node,
                            .type = operand.type,
                            .quantizers = {},
                            .member = member,
                            .source = findWrite(maker, made)->key,
                            .spec = spec});
    maker.copies.back().isUnrounded = isOfActivation(maker, maker.copies.back().source);
    maker.operands.push_back(
        {.key = {member, OperandKind::Output, 2}, .tensor = known->second, .access = OperandAccess::Write});
    addNote(maker, fmt::format("finds the amax of {}", quantizedName(m_graph.node(operand.node), operand.type)));
    return known->second;
  }

  static const StepOperand* findWrite(const Step& step, int tensor) {
    const auto found = std::ranges::find_if(step.operands, [&](const StepOperand& operand) {
      return operand.tensor == tensor && operand.access == OperandAccess::Write;
    });
    return found == step.operands.end() ? nullptr : &*found;
  }

  /// What is only quantized by the step that makes it need not be written.
  void dropUnreadSources() {
    std::vector<bool> isRead(m_plan.tensors.size(), false);
    for (const Step& step : m_plan.steps)
      for (const StepOperand& operand : step.operands)
        if (operand.access == OperandAccess::Read) isRead[at(root(operand.tensor))] = true;
    for (int tensor = 0; tensor < static_cast<int>(m_plan.tensors.size()); ++tensor)
      if (isPersistent(m_plan.tensors[at(tensor)])) isRead[at(root(tensor))] = true;
    for (Step& step : m_plan.steps) {
      if (step.copies.empty() || step.isQuantize()) continue;
      for (const QuantizeWork& work : step.copies)
        std::erase_if(step.operands, [&](const StepOperand& operand) {
          return operand.key == work.source && !isRead[at(root(operand.tensor))];
        });
      step.bytesRead = step.bytesWritten = 0;
      countBytes(step);
    }
  }

  /// Of one of many weights: its number.
  std::optional<std::int64_t> partOf(const GemmOperand& operand) const {
    const bool isPart = operand.type == TensorType::Weight && numWeights(m_graph.node(operand.node)) > 1;
    return isPart ? std::optional<std::int64_t>(operand.slot) : std::nullopt;
  }

  std::string quantizeName(const GemmOperand& operand) const {
    const std::optional<std::int64_t> part = partOf(operand);
    return fmt::format("{}.quantize_{}{}", m_graph.node(operand.node).id, roleName(operand.type),
                       part ? std::to_string(*part) : "");
  }

  /// The rows of weights are divided evenly; those of x by an input of the op.
  void addGroupSizes(Step& step, const GemmOperand& operand) {
    if (groupsIn(operand) == 0 || operand.type == TensorType::Weight) return;
    const OperandKey sizes{0, OperandKind::Input, GroupedForm::kSplitSizes};
    step.operands.push_back(
        {.key = {step.copies.back().member, OperandKind::Input, 1}, .tensor = tensorFor({operand.node}, sizes)});
  }

  void addCopy(Step& step, const GemmOperand& operand, Direction direction) {
    const Node& node = m_graph.node(operand.node);
    const std::optional<QuantizerSpec>& quantizer = quantizersOf(node, operand.type).of(direction);
    if (!quantizer || !isCopyNeeded(operand, direction)) return;
    const bool isRowwise = direction == Direction::Rowwise;
    QuantizeWork& work = step.copies.back();
    (isRowwise ? work.quantizers.rowwise : work.quantizers.columnwise) = quantizer;
    TensorSpec spec = work.spec;
    spec.quantized = formOf(*quantizer, direction);
    spec.quantized->numGroups = groupsIn(operand);
    const std::string name =
        fmt::format("{}@{}", quantizedName(node, operand.type, partOf(operand)), directionName(direction));
    const TensorRole role = operand.type == TensorType::GradOutput ? TensorRole::Gradient : TensorRole::Intermediate;
    const int copy = addTensor(copyKey(operand, direction), name, std::move(spec), role);
    step.operands.push_back(
        {.key = {work.member, OperandKind::Output, isRowwise ? 0 : 1}, .tensor = copy, .access = OperandAccess::Write});
  }

  void addStateOperands(Step& step, const GemmOperand& operand) {
    const int member = step.copies.back().member;
    const int groups = static_cast<int>(std::max<std::int64_t>(groupsIn(operand), 1));
    for (int group = 0; group < groups; ++group) {
      const int slot = partSlot(operand, group);
      const int scale = find({Subject::QuantizerScale, operand.node, slot});
      if (scale < 0) return;
      step.operands.push_back({.key = {member, OperandKind::Parameter, group}, .tensor = scale});
      step.operands.push_back({.key = {member, OperandKind::Residual, group},
                               .tensor = find({Subject::AmaxHistory, operand.node, slot}),
                               .access = OperandAccess::Accumulate});
    }
  }

  void keepResults(Step& step) {
    step.note = "once: the weight stays the same";
    for (const StepOperand& operand : step.operands)
      if (operand.access == OperandAccess::Write) m_plan.tensors[at(operand.tensor)].isKept = true;
  }

  void addQuantizerStates() {
    for (const QuantizerState& state : m_states) {
      const int slot = slotOf(state);
      addTensor({Subject::QuantizerScale, state.node, slot}, state.scaleName, scaleSpec(), TensorRole::QuantizerState);
      addTensor({Subject::AmaxHistory, state.node, slot}, state.historyName, historySpec(*m_graph.delayedScaling()),
                TensorRole::QuantizerState);
    }
  }

  int slotOf(const QuantizerState& state) const {
    return TensorIndex::partSlot(m_graph.node(state.node), state.type, static_cast<int>(state.group));
  }

  /// Forward states change when the forward pass ends, backward states when backward does.
  void addScaleUpdate(Phase phase) {
    Step step{.name = fmt::format("delayed_scaling.{}", phaseName(phase)),
              .kernel = "delayed_scaling_update",
              .phase = phase};
    step.scaleUpdate =
        ScaleUpdateWork{.options = m_graph.delayedScaling().value_or(DelayedScaling()), .maxFinites = {}};
    for (const QuantizerState& state : m_states)
      if ((state.pass() == StatePass::Forward) == (phase == Phase::Forward)) addState(step, state);
    if (step.operands.empty()) return;
    countBytes(step);
    m_plan.steps.push_back(std::move(step));
  }

  void addState(Step& step, const QuantizerState& state) {
    const int index = static_cast<int>(step.scaleUpdate->maxFinites.size());
    const int slot = slotOf(state);
    step.scaleUpdate->maxFinites.push_back(state.maxFinite);
    step.operands.push_back({.key = {0, OperandKind::Parameter, index},
                             .tensor = find({Subject::QuantizerScale, state.node, slot}),
                             .access = OperandAccess::Accumulate});
    step.operands.push_back({.key = {0, OperandKind::Residual, index},
                             .tensor = find({Subject::AmaxHistory, state.node, slot}),
                             .access = OperandAccess::Accumulate});
  }

  // Handed copies ------------------------------------------------------------------------------------------------

  static GemmOperand passedOn(const FusedOperation& entry, Phase phase) {
    return {entry.nodes.front(), phase == Phase::Forward ? TensorType::Input : TensorType::GradOutput};
  }

  int sourceOf(const FusedOperation& entry, Phase phase) {
    const OperandKind kind = phase == Phase::Forward ? OperandKind::Input : OperandKind::GradOutput;
    return tensorFor(entry.nodes, {0, kind, 0});
  }

  bool isQuantizeIn(const FusedOperation& entry, Phase phase) const {
    return !entry.isFused() && passesOnQuantized(m_graph.node(entry.nodes.front()), passedOn(entry, phase).type);
  }

  /// A Quantize whose codes are all that anybody reads.
  bool isOnlyHanded(const FusedOperation& entry, Phase phase) const {
    return isQuantizeIn(entry, phase) && !m_handed.isReadPlain(passedOn(entry, phase));
  }

  std::string noteOf(const FusedOperation& entry, Phase phase) const {
    return isQuantizeIn(entry, phase) ? "back to high precision: not all that read it can read codes"
                                      : entry.note(m_graph);
  }

  bool takeHandedCopies(const GemmOperand& reader) {
    const std::optional<GemmOperand> source = m_handed.sourceOf(reader);
    if (!source) return false;
    for (const Direction direction : {Direction::Rowwise, Direction::Columnwise})
      m_index[copyKey(reader, direction)] = find(copyKey(*source, direction));
    return true;
  }

  bool isHandedCopyNeeded(const GemmOperand& source, Direction direction) const {
    const std::vector<GemmOperand> readers = m_handed.readersOf(source);
    const bool isReadPlain = direction == Direction::Rowwise && m_handed.isReadPlain(source);
    return isReadPlain ||
           std::ranges::any_of(readers, [&](const GemmOperand& reader) { return isCopyNeeded(reader, direction); });
  }

  void addView(const std::vector<NodeId>& nodes, const ViewOperand& view) {
    const int source = tensorFor(nodes, view.source);
    m_viewOf[at(tensorFor(nodes, view.view))] = source;
  }

  void countWork(Step& step, const FusedOperation& entry) const {
    if (step.isView) return;
    for (const NodeId id : entry.nodes) {
      const Node& node = m_graph.node(id);
      if (!node.operation->flops) continue;
      const FlopCount flops = node.operation->flops(node.attributes, m_graph.inputSpecs(id));
      step.flops += step.phase == Phase::Forward ? flops.forward : backwardFlops(m_graph, id);
    }
    countBytes(step);
  }

  /// Every tensor once, even where two members read it.
  void countBytes(Step& step) const {
    std::set<int> seen;
    for (const StepOperand& operand : step.operands) {
      if (!seen.insert(operand.tensor).second) continue;
      const std::int64_t bytes = m_plan.spec(operand).bytes();
      if (operand.access != OperandAccess::Write) step.bytesRead += bytes;
      if (operand.access != OperandAccess::Read) step.bytesWritten += bytes;
    }
  }

  void addForwardStep(const FusedOperation& entry) {
    addStep(entry, Phase::Forward, forwardOperands(m_graph, entry, m_saved));
  }

  void nameOutputs() {
    for (const GraphOutput& output : m_graph.outputs()) {
      PlanTensor& tensor = m_plan.tensors[at(find({Subject::Value, output.value, 0}))];
      if (tensor.role != TensorRole::Intermediate) {  // an input, or an output under a second name
        const int alias = addTensor(output.name, m_graph.value(output.value).spec, TensorRole::Output);
        m_viewOf[at(alias)] = find({Subject::Value, output.value, 0});
        continue;
      }
      tensor.name = output.name;
      tensor.role = TensorRole::Output;
    }
  }

  // Gradients ----------------------------------------------------------------------------------------------------

  /// How many gradients arrive at each value: one from every reader that gives one, and one from each pipeline output.
  static std::vector<int> countContributions(const Graph& graph) {
    std::vector<int> counts;
    for (const Value& value : graph.values())
      counts.push_back(static_cast<int>(std::ranges::count_if(
          value.uses, [&](const Use& use) { return graph.node(use.node).needs.inputs[at(use.slot)]; })));
    for (const GraphOutput& output : graph.outputs()) ++counts[at(output.value)];
    return counts;
  }

  void addBackward() {
    m_contributions.resize(m_graph.values().size());
    for (const GraphOutput& output : m_graph.outputs()) addOutputGradient(output);
    for (auto entry = m_report.backward.rbegin(); entry != m_report.backward.rend(); ++entry) addBackwardEntry(*entry);
    for (const NodeId id : m_delayed) addShare(id, Share::Delayed);
    addScaleUpdate(Phase::Backward);
  }

  /// Gradients that wait are queued, and computed in the order of the queue when all others are there.
  void addBackwardEntry(const FusedOperation& entry) {
    const NodeId id = entry.nodes.front();
    if (entry.isFused() || !m_graph.node(id).delayedNeeds().anyParameter())
      return addStep(entry, Phase::Backward, backwardOperands(m_graph, entry));
    m_delayed.push_back(id);
    const GradientNeeds prompt = m_graph.node(id).promptNeeds();
    if (prompt.anyInput() || prompt.anyParameter()) addShare(id, Share::Prompt);
    addContributions(id);
  }

  enum class Share { Prompt, Delayed };

  void addShare(NodeId id, Share which) {
    const Node& node = m_graph.node(id);
    const bool isDelayed = which == Share::Delayed;
    BackwardShare share = shareOf(m_graph, id, isDelayed ? node.delayedNeeds() : node.promptNeeds());
    Step step = makeStep({.nodes = {id}}, Phase::Backward, backwardOperands(m_graph, id, share));
    if (isDelayed) step.name += " (wgrad)";
    dropUnreadGradients(step);
    step.context = std::move(share.context);
    const FlopCount flops = node.operation->flops(node.attributes, m_graph.inputSpecs(id));
    step.flops = isDelayed ? flops.wgrad : backwardFlops(m_graph, id) - flops.wgrad;
    countBytes(step);
    m_plan.steps.push_back(std::move(step));
  }

  /// A share of an op reads only what its own gradients are made of.
  void dropUnreadGradients(Step& step) const {
    bool isRead[3] = {false, false, false};  // rowwise, columnwise, as it is
    for (const StepOperand& result : step.operands)
      if (result.access != OperandAccess::Read) isRead[readerOf(step, result.key)] = true;
    const bool hasCopies = std::ranges::any_of(step.operands, [](const StepOperand& operand) {
      return operand.key.kind == OperandKind::GradOutput && operand.direction;
    });
    std::erase_if(step.operands, [&](const StepOperand& operand) {
      const int reader = operand.direction ? static_cast<int>(*operand.direction) : 2;
      return hasCopies && operand.key.kind == OperandKind::GradOutput && !isRead[reader];
    });
  }

  /// Which of the three a gradient is made of.
  int readerOf(const Step& step, const OperandKey& result) const {
    if (result.kind == OperandKind::GradInput) return result.slot == 0 ? 0 : 2;
    return result.slot < numWeights(m_graph.node(step.nodes.front())) ? 1 : 2;
  }

  void addOutputGradient(const GraphOutput& output) {
    if (!m_graph.value(output.value).needsGradient) return;
    const int tensor = addTensor("grad." + output.name, m_graph.value(output.value).spec, TensorRole::OutputGradient);
    contribute(output.value, tensor);
  }

  /// After a backward step: the input gradients it made belong to the values that its nodes read.
  void addContributions(NodeId id) {
    const Node& node = m_graph.node(id);
    for (int slot = 0; slot < static_cast<int>(node.inputs.size()); ++slot)
      if (const int tensor = find({Subject::PartialGradient, id, slot}); tensor >= 0)
        contribute(node.inputs[at(slot)], tensor);
  }

  void contribute(ValueId id, int tensor) {
    m_contributions[at(id)].push_back(tensor);
    if (static_cast<int>(m_contributions[at(id)].size()) < m_expected[at(id)]) return;
    if (m_expected[at(id)] > 1)
      m_index[{Subject::ValueGradient, id, 0}] = addGradientSum(id);
    else
      m_index[{Subject::ValueGradient, id, 0}] = isHandedThrough(id, tensor) ? addInputGradient(id, tensor) : tensor;
  }

  /// Is the value an input that is an output, too, and whose gradient comes from nowhere else?
  bool isHandedThrough(ValueId id, int tensor) const {
    return m_graph.value(id).producer < 0 && m_plan.tensors[at(tensor)].role == TensorRole::OutputGradient;
  }

  int addInputGradient(ValueId id, int ofOutput) {
    const Value& value = m_graph.value(id);
    const int tensor = addTensor("grad." + valueName(value), value.spec, TensorRole::InputGradient);
    m_viewOf[at(tensor)] = ofOutput;
    return tensor;
  }

  int addGradientSum(ValueId id) {
    const Value& value = m_graph.value(id);
    const std::string name = "grad." + valueName(value);
    const int sum = addTensor({Subject::ValueGradient, id, 0}, name, value.spec,
                              value.producer < 0 ? TensorRole::InputGradient : TensorRole::Gradient);
    Step step{.name = name, .kernel = "accumulate", .phase = Phase::Backward};
    for (const int part : m_contributions[at(id)])
      step.operands.push_back({.key = {0, OperandKind::Input, static_cast<int>(step.operands.size())}, .tensor = part});
    step.operands.push_back({.key = {0, OperandKind::Output, 0}, .tensor = sum, .access = OperandAccess::Write});
    step.flops = value.spec.numElements() * static_cast<std::int64_t>(m_contributions[at(id)].size() - 1);
    countBytes(step);
    m_plan.steps.push_back(std::move(step));
    return sum;
  }

  // Memory -------------------------------------------------------------------------------------------------------

  bool isPersistent(const PlanTensor& tensor) const {
    if (tensor.role == TensorRole::Offloaded) return false;
    const bool isInside = tensor.role == TensorRole::Intermediate || tensor.role == TensorRole::Gradient ||
                          tensor.role == TensorRole::Reloaded;
    return m_options.keepIntermediates || tensor.isKept || !isInside;
  }

  void assignStorages() {
    std::vector<int> storageOf(m_plan.tensors.size(), -1);
    for (int tensor = 0; tensor < static_cast<int>(m_plan.tensors.size()); ++tensor) {
      int& storage = storageOf[at(root(tensor))];
      if (storage < 0) {
        storage = static_cast<int>(m_plan.storages.size());
        m_plan.storages.push_back({.bytes = m_plan.tensors[at(tensor)].spec.bytes(), .firstStep = -1, .lastStep = -1});
      }
      m_plan.tensors[at(tensor)].storage = storage;
      m_plan.storages[at(storage)].isPersistent |= isPersistent(m_plan.tensors[at(tensor)]);
      m_plan.storages[at(storage)].isOnHost |= m_plan.tensors[at(tensor)].role == TensorRole::Offloaded;
    }
    for (int step = 0; step < static_cast<int>(m_plan.steps.size()); ++step) extendLifetimes(step);
    markSaved();
  }

  void extendLifetimes(int step) {
    for (const StepOperand& operand : m_plan.steps[at(step)].operands) {
      Storage& storage = m_plan.storages[at(m_plan.tensors[at(operand.tensor)].storage)];
      if (storage.firstStep < 0) storage.firstStep = step;
      storage.lastStep = step;
    }
  }

  /// Saved are forward tensors that a backward step reads.
  void markSaved() {
    std::vector<bool> isCounted = inputStorages();
    for (const Step& step : m_plan.steps) {
      if (step.phase != Phase::Backward) continue;
      for (const StepOperand& operand : step.operands) {
        PlanTensor& tensor = m_plan.tensors[at(operand.tensor)];
        const bool isForward = tensor.role == TensorRole::Intermediate || tensor.role == TensorRole::Output;
        if (!isForward || operand.access == OperandAccess::Write) continue;
        tensor.isSaved = true;
        const Storage& storage = m_plan.storages[at(tensor.storage)];
        if (!isCounted[at(tensor.storage)]) m_plan.savedForBackwardBytes += storage.bytes;
        isCounted[at(tensor.storage)] = true;
      }
    }
  }

  /// Inputs are the caller's: keeping them for backward costs nothing.
  std::vector<bool> inputStorages() const {
    std::vector<bool> isInput(m_plan.storages.size(), false);
    for (const PlanTensor& tensor : m_plan.tensors)
      if (tensor.role == TensorRole::Input) isInput[at(tensor.storage)] = true;
    return isInput;
  }

  void placeStorages() {
    for (Storage& storage : m_plan.storages) {
      if (!storage.isPersistent && !storage.isOnHost) continue;
      std::int64_t& end = storage.isOnHost ? m_plan.hostBytes : m_plan.persistentBytes;
      storage.offset = end;
      end += alignedBytes(storage.bytes);
    }
    std::vector<std::vector<int>> ending(m_plan.steps.size());
    Arena arena;
    for (int step = 0; step < static_cast<int>(m_plan.steps.size()); ++step) placeStep(step, arena, ending);
    m_plan.arenaBytes = arena.sizeBytes();
    for (Storage& storage : m_plan.storages)
      if (!storage.isPersistent && !storage.isOnHost) storage.offset += m_plan.persistentBytes;
  }

  void placeStep(int step, Arena& arena, std::vector<std::vector<int>>& ending) {
    std::vector<int>& dying = ending[at(step)];
    EndingInputs inputs(m_plan, m_plan.steps[at(step)], dying);
    for (const StepOperand& operand : m_plan.steps[at(step)].operands) {
      const int index = m_plan.tensors[at(operand.tensor)].storage;
      Storage& storage = m_plan.storages[at(index)];
      if (storage.isPersistent || storage.isOnHost || storage.firstStep != step ||
          operand.access == OperandAccess::Read)
        continue;
      const int reused = inputs.take(m_plan.spec(operand));
      storage.offset = reused >= 0 ? m_plan.storages[at(reused)].offset : arena.allocate(storage.bytes);
      ending[at(storage.lastStep)].push_back(index);
    }
    for (const int index : dying)
      if (!inputs.isTaken(index)) arena.release(m_plan.storages[at(index)].offset, m_plan.storages[at(index)].bytes);
  }

  const Graph& m_graph;
  const FusionReport& m_report;
  const PlanOptions& m_options;
  SavedSet m_saved;
  std::vector<int> m_expected;  // contributions by value
  std::vector<QuantizerState> m_states;
  std::set<HandOver> m_handOvers;
  HandedCopies m_handed;
  std::map<int, int> m_amaxOf;  // what quantizing steps read, by the tensor they quantize
  Plan m_plan;
  TensorIndex m_index;
  std::vector<int> m_viewOf;
  std::vector<std::vector<int>> m_contributions;  // by value
  std::vector<NodeId> m_delayed;                  // ops whose weight gradients wait, in the order of backward
};

}  // namespace

const StepOperand* Step::find(OperandKey key) const {
  const auto found = std::ranges::find(operands, key, &StepOperand::key);
  return found == operands.end() ? nullptr : &*found;
}

const QuantizeWork* Step::workOn(OperandKey key) const {
  const auto found = std::ranges::find(copies, key, &QuantizeWork::source);
  return found == copies.end() ? nullptr : &*found;
}

std::int64_t Plan::numLaunches() const {
  return std::ranges::count_if(steps, [](const Step& step) { return step.isWork(); });
}

int Plan::findTensor(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &PlanTensor::name);
  return found == tensors.end() ? -1 : static_cast<int>(found - tensors.begin());
}

Plan makePlan(const Graph& graph, const FusionReport& report, const PlanOptions& options) {
  return Planner(graph, report, options).make();
}

ElementwiseProgram composeProgram(const Graph& graph, const Step& step, int first, int last) {
  SortedSet<OperandKey> present;
  for (const StepOperand& operand : step.operands) present.insert(operand.key);
  for (const QuantizeWork& work : step.copies) present.insert(work.source);
  const int end = last < 0 ? static_cast<int>(step.nodes.size()) : last;
  return composeMembers(graph, step.nodes, step.phase, present, first, end);
}

namespace {

std::string toString(const Plan& plan, const Step& step) {
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  for (const StepOperand& operand : step.operands)
    (operand.access == OperandAccess::Read ? reads : writes)
        .push_back(plan.tensors[static_cast<std::size_t>(operand.tensor)].name +
                   (operand.access == OperandAccess::Accumulate ? " (added to)" : ""));
  return fmt::format("{:<8} {:<20} {} : {} -> {}{}", phaseName(step.phase), step.isView ? "view" : step.kernel,
                     step.name, fmt::join(reads, ", "), fmt::join(writes, ", "), inParentheses(step.note));
}

}  // namespace

std::string toString(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) text += toString(plan, step) + "\n";
  text += fmt::format("persistent {}, arena {}, saved for backward {}, {} steps\n", formatBytes(plan.persistentBytes),
                      formatBytes(plan.arenaBytes), formatBytes(plan.savedForBackwardBytes), plan.numLaunches());
  if (plan.hostBytes > 0) text += fmt::format("in the host's memory {}\n", formatBytes(plan.hostBytes));
  return text;
}

}  // namespace fuseline
