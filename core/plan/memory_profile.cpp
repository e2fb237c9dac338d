// The memory of a plan, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory_profile.h"

#include "core/plan/attention_memory.h"
#include "core/support/text.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

MemoryPurpose purposeOf(const PlanTensor& tensor) {
  switch (tensor.role) {
    case TensorRole::Parameter:
    case TensorRole::QuantizerState: return MemoryPurpose::Parameters;
    case TensorRole::OptimizerState: return MemoryPurpose::OptimizerState;
    case TensorRole::ParameterGradient:
    case TensorRole::MainGradient: return MemoryPurpose::ParameterGradients;
    case TensorRole::Input:
    case TensorRole::OutputGradient:
    case TensorRole::InputGradient: return MemoryPurpose::InputsAndOutputs;
    case TensorRole::Output: return tensor.isSaved ? MemoryPurpose::Kept : MemoryPurpose::InputsAndOutputs;
    default: break;
  }
  if (tensor.isKept) return MemoryPurpose::Parameters;
  return tensor.isSaved ? MemoryPurpose::Kept : MemoryPurpose::Passing;
}

/// If tensors share memory, the one with the longest lifetime decides; an input belongs to the caller, even if ops read
/// it.
std::vector<MemoryPurpose> purposesByStorage(const Plan& plan) {
  std::vector<MemoryPurpose> purposes(plan.storages.size(), MemoryPurpose::Passing);
  std::vector<bool> isInput(plan.storages.size(), false);
  for (const PlanTensor& tensor : plan.tensors) {
    MemoryPurpose& purpose = purposes[toIndex(tensor.storage)];
    const MemoryPurpose own = purposeOf(tensor);
    const bool isLonger = purpose == MemoryPurpose::Passing || own == MemoryPurpose::Kept;
    if (isLonger && !isInput[toIndex(tensor.storage)]) purpose = own;
    if (tensor.role == TensorRole::Input) isInput[toIndex(tensor.storage)] = true;
    if (isInput[toIndex(tensor.storage)]) purpose = MemoryPurpose::InputsAndOutputs;
  }
  return purposes;
}

/// Walks the steps of a plan and sums the memory in use.
class MemoryWalk {
 public:
  explicit MemoryWalk(const Plan& plan)
      : m_plan(plan),
        m_purposes(purposesByStorage(plan)),
        m_beginning(plan.steps.size()),
        m_ending(plan.steps.size()),
        m_isInUse(plan.storages.size(), false) {
    for (int storage = 0; storage < static_cast<int>(plan.storages.size()); ++storage) file(storage);
  }

  std::vector<StepMemory> walk() {
    std::vector<StepMemory> steps;
    for (int step = 0; step < static_cast<int>(m_plan.steps.size()); ++step) {
      for (const int storage : m_beginning[toIndex(step)]) begin(storage);
      m_now.step = step;
      if (m_plan.steps[toIndex(step)].isLaunched()) steps.push_back(m_now);
      for (const int storage : m_ending[toIndex(step)]) end(storage);
    }
    return steps;
  }

 private:
  const Storage& storageAt(int index) const { return m_plan.storages[toIndex(index)]; }

  void file(int index) {
    const Storage& storage = storageAt(index);
    if (storage.isOnHost) return;
    if (storage.isPersistent) return count(index, storage.bytes);
    if (storage.firstStep < 0 || storage.bytes == 0) return;  // it has no place
    m_beginning[toIndex(storage.firstStep)].push_back(index);
    m_ending[toIndex(storage.lastStep)].push_back(index);
  }

  void count(int index, std::int64_t bytes) {
    m_now.bytes[static_cast<std::size_t>(m_purposes[toIndex(index)])] += bytes;
  }

  /// A step may write where it reads: the two are one piece of memory then.
  void begin(int index) {
    if (const auto before = m_byOffset.find(storageAt(index).offset); before != m_byOffset.end()) end(before->second);
    m_byOffset[storageAt(index).offset] = index;
    m_isInUse[toIndex(index)] = true;
    count(index, storageAt(index).bytes);
  }

  void end(int index) {
    if (!m_isInUse[toIndex(index)]) return;
    m_isInUse[toIndex(index)] = false;
    m_byOffset.erase(storageAt(index).offset);
    count(index, -storageAt(index).bytes);
  }

  const Plan& m_plan;
  std::vector<MemoryPurpose> m_purposes;
  std::vector<std::vector<int>> m_beginning;  // storages by step
  std::vector<std::vector<int>> m_ending;
  std::vector<bool> m_isInUse;
  std::map<std::int64_t, int> m_byOffset;
  StepMemory m_now;
};

/// The op of a fused step that an operand belongs to; nullopt: the step is no op's, as a sum of gradients is.
std::optional<NodeId> readerOf(const Step& step, const StepOperand& operand) {
  if (step.transfer) return step.transfer->reader;
  const auto member = toIndex(operand.key.member);
  if (member < step.nodes.size()) return step.nodes[member];
  const auto work = std::ranges::find(step.copies, operand.key.member, &QuantizeWork::member);
  return work == step.copies.end() ? std::nullopt : std::optional(work->reader);
}

std::vector<std::set<NodeId>> backwardReaders(const Plan& plan) {
  std::vector<std::set<NodeId>> readers(plan.storages.size());
  for (const Step& step : plan.steps) {
    if (step.phase != Phase::Backward && !step.transfer) continue;
    for (const StepOperand& operand : step.operands)
      if (const auto reader = readerOf(step, operand); reader && operand.access != OperandAccess::Write)
        readers[toIndex(plan.tensors[toIndex(operand.tensor)].storage)].insert(*reader);
  }
  return readers;
}

std::vector<KeptTensor> keptTensors(const Plan& plan) {
  const std::vector<MemoryPurpose> purposes = purposesByStorage(plan);
  const std::vector<std::set<NodeId>> readers = backwardReaders(plan);
  std::vector<bool> isListed(plan.storages.size(), false);
  std::vector<KeptTensor> kept;
  for (int tensor = 0; tensor < static_cast<int>(plan.tensors.size()); ++tensor) {
    const int index = plan.tensors[toIndex(tensor)].storage;
    const Storage& storage = plan.storages[toIndex(index)];
    if ((purposes[toIndex(index)] != MemoryPurpose::Kept && !storage.isOnHost) || isListed[toIndex(index)]) continue;
    isListed[toIndex(index)] = true;
    kept.push_back({.tensor = tensor,
                    .bytes = storage.bytes,
                    .firstStep = storage.firstStep,
                    .lastStep = storage.lastStep,
                    .readers = {readers[toIndex(index)].begin(), readers[toIndex(index)].end()},
                    .isOnHost = storage.isOnHost});
  }
  std::ranges::stable_sort(kept, {}, &KeptTensor::readers);
  return kept;
}

std::size_t widestName(const MemoryProfile& profile, const Plan& plan) {
  std::size_t widest = 0;
  for (const StepMemory& memory : profile.steps)
    widest = std::max(widest, plan.steps[toIndex(memory.step)].name.size());
  return widest;
}

/// Only plans with an optimizer have a column for its state.
class StepTable {
 public:
  StepTable(const MemoryProfile& profile, const Plan& plan)
      : m_profile(profile), m_plan(plan), m_nameWidth(widestName(profile, plan)) {
    for (const StepMemory& memory : profile.steps)
      m_hasOptimizer = m_hasOptimizer || memory.of(MemoryPurpose::OptimizerState) > 0;
  }

  std::string text() const {
    std::string text = fmt::format("{:<{}}", "", phaseWidth() + m_nameWidth + 1);
    for (std::size_t purpose = 0; purpose < kNumMemoryPurposes; ++purpose)
      if (isShown(purpose)) text += fmt::format(" {:>10}", kHeadings[purpose]);
    text += fmt::format(" {:>10}\n", "in use");
    for (const StepMemory& memory : m_profile.steps) text += line(memory);
    return text;
  }

 private:
  static constexpr std::array kHeadings = {"parameters", "their grad", "optimizer", "in and out", "kept", "temporary"};

  bool isShown(std::size_t purpose) const {
    return m_hasOptimizer || purpose != static_cast<std::size_t>(MemoryPurpose::OptimizerState);
  }
  std::size_t phaseWidth() const { return phaseName(m_hasOptimizer ? Phase::Optimizer : Phase::Backward).size(); }

  std::string line(const StepMemory& memory) const {
    const Step& step = m_plan.steps[toIndex(memory.step)];
    std::string text = fmt::format("{:<{}} {:<{}}", phaseName(step.phase), phaseWidth(), step.name, m_nameWidth);
    for (std::size_t purpose = 0; purpose < kNumMemoryPurposes; ++purpose)
      if (isShown(purpose)) text += fmt::format(" {:>10}", formatBytes(memory.bytes[purpose]));
    return text + fmt::format(" {:>10}\n", formatBytes(memory.total()));
  }

  const MemoryProfile& m_profile;
  const Plan& m_plan;
  std::size_t m_nameWidth;
  bool m_hasOptimizer = false;
};

std::string keptText(const KeptTensor& kept, const Plan& plan, const Graph& graph) {
  std::vector<std::string> readers;
  for (const NodeId reader : kept.readers) readers.push_back(graph.node(reader).id);
  const PlanTensor& tensor = plan.tensors[toIndex(kept.tensor)];
  return fmt::format("  {:<24} {:<24} {:>10}  for {}, until {}{}\n", tensor.name, toString(tensor.spec),
                     formatBytes(kept.bytes), fmt::join(readers, ", "), plan.steps[toIndex(kept.lastStep)].name,
                     kept.isOnHost ? ", in the host's memory" : "");
}

}  // namespace

std::string_view purposeName(MemoryPurpose purpose) {
  switch (purpose) {
    case MemoryPurpose::Parameters: return "parameters";
    case MemoryPurpose::ParameterGradients: return "parameter gradients";
    case MemoryPurpose::OptimizerState: return "optimizer state";
    case MemoryPurpose::InputsAndOutputs: return "inputs and outputs";
    case MemoryPurpose::Kept: return "kept for backward";
    case MemoryPurpose::Passing: return "temporary";
  }
  return {};
}

MemoryProfile memoryProfile(const Plan& plan) {
  MemoryProfile profile{.steps = MemoryWalk(plan).walk(), .kept = keptTensors(plan)};
  const auto peak = std::ranges::max_element(profile.steps, {}, &StepMemory::total);
  profile.peak = static_cast<std::size_t>(peak - profile.steps.begin());
  return profile;
}

std::string toString(const MemoryProfile& profile, const Plan& plan, const Graph& graph) {
  std::string text = StepTable(profile, plan).text();
  if (profile.steps.empty()) return text;
  text += fmt::format("at most {} in use, at {}; allocated once: {}\n", formatBytes(profile.peakBytes()),
                      plan.steps[toIndex(profile.steps[profile.peak].step)].name, formatBytes(plan.peakBytes()));
  text += fmt::format("kept for backward: {}\n", formatBytes(plan.savedForBackwardBytes));
  for (const KeptTensor& kept : profile.kept) text += keptText(kept, plan, graph);
  return text + attentionMemory(profile, plan, graph);
}

}  // namespace fuseline
