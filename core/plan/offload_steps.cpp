// Finds the tensors kept by ops that offload, and inserts the copies into the plan.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/offload_steps.h"

#include "core/ops/offload.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Number of concurrent copies of one direction: one runs while the next tensor is computed, as with the two buffers of
/// TransformerEngine's offloading. More would keep more tensors on the device.
constexpr std::size_t kUnderWay = 2;
/// A tensor that is smaller than the largest by more than this factor, such as the statistics of a norm, is not worth a
/// copy.
constexpr std::int64_t kLeastShare = 64;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// A tensor that waits in the host's memory.
struct Waiting {
  int tensor = -1;  // on the device in forward
  NodeId reader = -1;
  int producer = -1;   // the last step that writes it
  int firstRead = -1;  // the first step of backward that reads it
  int onHost = -1;
  int reloaded = -1;
};

class Weaver {
 public:
  Weaver(const Graph& graph, Plan& plan, std::vector<int>& viewOf) : m_graph(graph), m_plan(plan), m_viewOf(viewOf) {}

  void weave() {
    if (std::ranges::none_of(m_graph.nodes(), [](const Node& node) { return isOffloaded(node.attributes); })) return;
    find();
    if (m_waiting.empty()) return;
    for (Waiting& waiting : m_waiting) addTensors(waiting);
    for (Step& step : m_plan.steps)
      if (step.phase == Phase::Backward) readReloaded(step);
    m_before.resize(m_plan.steps.size() + 1);
    addOffloads();
    addReloads();
    insertSteps();
  }

 private:
  int root(int tensor) const {
    while (m_viewOf[at(tensor)] != tensor) tensor = m_viewOf[at(tensor)];
    return tensor;
  }

  /// The op that an operand of a step belongs to; -1: none.
  static NodeId nodeOf(const Step& step, const StepOperand& operand) {
    if (at(operand.key.member) < step.nodes.size()) return step.nodes[at(operand.key.member)];
    return step.isQuantize() ? step.copies.front().reader : -1;
  }

  bool mayWait(int tensor) const {
    const PlanTensor& planned = m_plan.tensors[at(tensor)];
    return planned.role == TensorRole::Intermediate && !planned.isKept && planned.spec.bytes() > 0;
  }

  void find() {
    for (const Step& step : m_plan.steps)
      for (const StepOperand& operand : step.operands)
        if (step.phase == Phase::Backward && operand.access == OperandAccess::Read) consider(step, operand);
    for (int index = 0; index < static_cast<int>(m_plan.steps.size()); ++index) findBorders(index);
    std::erase_if(m_waiting, [](const Waiting& waiting) { return waiting.producer < 0; });
    dropSmall();
  }

  /// Copies of weights, which are made anew in every forward, are no activations.
  void consider(const Step& step, const StepOperand& operand) {
    if (operand.key.kind == OperandKind::Parameter) return;
    const NodeId node = nodeOf(step, operand);
    const int tensor = root(operand.tensor);
    if (node < 0 || !isOffloaded(m_graph.node(node).attributes) || !mayWait(tensor)) return;
    if (m_places.try_emplace(tensor, m_waiting.size()).second) m_waiting.push_back({.tensor = tensor, .reader = node});
  }

  /// Others may read it in backward before the op that offloads it does.
  void findBorders(int index) {
    const Step& step = m_plan.steps[at(index)];
    for (const StepOperand& operand : step.operands) {
      const auto place = m_places.find(root(operand.tensor));
      if (place == m_places.end()) continue;
      Waiting& waiting = m_waiting[place->second];
      if (step.phase == Phase::Forward && operand.access != OperandAccess::Read) waiting.producer = index;
      if (step.phase == Phase::Backward && waiting.firstRead < 0) waiting.firstRead = index;
    }
  }

  std::int64_t bytesOf(const Waiting& waiting) const { return m_plan.tensors[at(waiting.tensor)].spec.bytes(); }

  void dropSmall() {
    std::int64_t largest = 0;
    for (const Waiting& waiting : m_waiting) largest = std::max(largest, bytesOf(waiting));
    std::erase_if(m_waiting, [&](const Waiting& waiting) { return bytesOf(waiting) * kLeastShare < largest; });
  }

  int addTensor(const PlanTensor& like, const char* suffix, TensorRole role) {
    const auto index = static_cast<int>(m_plan.tensors.size());
    PlanTensor added{.name = like.name + suffix, .spec = like.spec, .role = role};
    m_plan.tensors.push_back(std::move(added));
    m_viewOf.push_back(index);
    return index;
  }

  void addTensors(Waiting& waiting) {
    waiting.onHost = addTensor(PlanTensor(m_plan.tensors[at(waiting.tensor)]), "@host", TensorRole::Offloaded);
    waiting.reloaded = addTensor(PlanTensor(m_plan.tensors[at(waiting.tensor)]), "@reloaded", TensorRole::Reloaded);
    m_reloadedOf[waiting.tensor] = waiting.reloaded;
  }

  void readReloaded(Step& step) {
    for (StepOperand& operand : step.operands)
      if (const auto found = m_reloadedOf.find(root(operand.tensor)); found != m_reloadedOf.end())
        operand.tensor = reloadedView(operand.tensor, found->second);
  }

  /// A view of the tensor is read through a view of the reloaded one.
  int reloadedView(int tensor, int reloaded) {
    const auto [known, isNew] = m_reloadedViews.try_emplace(tensor, reloaded);
    if (isNew && root(tensor) != tensor) {
      known->second = addTensor(PlanTensor(m_plan.tensors[at(tensor)]), "@reloaded", TensorRole::Reloaded);
      m_viewOf[at(known->second)] = reloaded;
    }
    return known->second;
  }

  // Steps ----------------------------------------------------------------------------------------------------------

  Step transferStep(const Waiting& waiting, TransferWork::Kind kind) const {
    const TransferWork work{.kind = kind, .reader = waiting.reader};
    const bool isOffload = work.isOffload();
    const bool isWait = work.isWait();
    const int source = isOffload ? waiting.tensor : waiting.onHost;
    const int target = isOffload ? waiting.onHost : waiting.reloaded;
    Step step{.phase = isOffload ? Phase::Forward : Phase::Backward};
    step.kernel = fmt::format("{}{}", isOffload ? "offload" : "reload", isWait ? "_wait" : "");
    step.name = fmt::format("{} {}{}", isOffload ? "offload" : "reload", m_plan.tensors[at(waiting.tensor)].name,
                            isWait ? " (wait)" : "");
    step.transfer = work;
    step.operands = {{.key = {0, OperandKind::Input, 0}, .tensor = source},
                     {.key = {0, OperandKind::Output, 0},
                      .tensor = target,
                      .access = isWait ? OperandAccess::Read : OperandAccess::Write}};
    const std::int64_t bytes = m_plan.tensors[at(waiting.tensor)].spec.bytes();
    if (!isWait) (isOffload ? step.bytesRead : step.bytesWritten) = bytes;
    return step;
  }

  void addBefore(int step, const Waiting& waiting, TransferWork::Kind kind) {
    m_before[at(step)].push_back(transferStep(waiting, kind));
  }

  int firstBackwardStep() const {
    const auto found = std::ranges::find(m_plan.steps, Phase::Backward, &Step::phase);
    return static_cast<int>(found - m_plan.steps.begin());
  }

  /// The memory of a tensor is free again when its copy has ended: the wait precedes the copy after the next one.
  void addOffloads() {
    std::ranges::stable_sort(m_waiting, {}, &Waiting::producer);
    for (std::size_t i = 0; i < m_waiting.size(); ++i) {
      const int begin = m_waiting[i].producer + 1;
      if (i >= kUnderWay) addBefore(begin, m_waiting[i - kUnderWay], TransferWork::Kind::AwaitOffload);
      addBefore(begin, m_waiting[i], TransferWork::Kind::Offload);
    }
    for (std::size_t i = m_waiting.size() - std::min(kUnderWay, m_waiting.size()); i < m_waiting.size(); ++i)
      addBefore(firstBackwardStep(), m_waiting[i], TransferWork::Kind::AwaitOffload);
  }

  /// Every reload begins kUnderWay tensors ahead of its own tensor's use.
  void addReloads() {
    std::ranges::stable_sort(m_waiting, {}, &Waiting::firstRead);
    for (std::size_t i = 0; i < std::min(kUnderWay, m_waiting.size()); ++i)
      addBefore(firstBackwardStep(), m_waiting[i], TransferWork::Kind::Reload);
    for (std::size_t i = 0; i < m_waiting.size(); ++i) {
      addBefore(m_waiting[i].firstRead, m_waiting[i], TransferWork::Kind::AwaitReload);
      if (i + kUnderWay < m_waiting.size())
        addBefore(m_waiting[i].firstRead, m_waiting[i + kUnderWay], TransferWork::Kind::Reload);
    }
  }

  void insertSteps() {
    std::vector<Step> steps;
    for (std::size_t index = 0; index < m_before.size(); ++index) {
      std::ranges::move(m_before[index], std::back_inserter(steps));
      if (index < m_plan.steps.size()) steps.push_back(std::move(m_plan.steps[index]));
    }
    m_plan.steps = std::move(steps);
  }

  const Graph& m_graph;
  Plan& m_plan;
  std::vector<int>& m_viewOf;
  std::vector<Waiting> m_waiting;
  std::map<int, std::size_t> m_places;      // in the list, by tensor, as it was found
  std::map<int, int> m_reloadedOf;          // by the tensor in forward
  std::map<int, int> m_reloadedViews;       // by the tensor that was read
  std::vector<std::vector<Step>> m_before;  // by the step that follows them
};

}  // namespace

void addOffloadSteps(const Graph& graph, Plan& plan, std::vector<int>& viewOf) { Weaver(graph, plan, viewOf).weave(); }

}  // namespace fuseline
