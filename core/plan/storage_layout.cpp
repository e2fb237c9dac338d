// Lays storages out by lifetime.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/storage_layout.h"

#include "core/plan/memory_plan.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>

namespace fuseline {

namespace {

/// Storages of the inputs that end at an elementwise step; its outputs may take them.
class EndingInputs {
 public:
  /// dying: storages whose last step this is.
  EndingInputs(const Plan& plan, const Step& step, const std::vector<int>& dying) {
    if (dying.empty() || (step.kernel != "elementwise" && step.kernel != "accumulate")) return;
    const std::set<int> ending(dying.begin(), dying.end());
    for (const StepOperand& operand : step.operands) {
      const PlanTensor& tensor = plan.tensors[toIndex(operand.tensor)];
      const int storage = tensor.storage;
      if (operand.access == OperandAccess::Read && !tensor.columns && ending.contains(storage))
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

class StorageLayout {
 public:
  StorageLayout(Plan& plan, const std::vector<int>& viewOf, const PlanOptions& options)
      : m_plan(plan), m_viewOf(viewOf), m_options(options) {}

  void layOut() {
    assignStorages();
    placeStorages();
  }

 private:
  int root(int tensor) const {
    while (m_viewOf[toIndex(tensor)] != tensor) tensor = m_viewOf[toIndex(tensor)];
    return tensor;
  }

  void assignStorages() {
    std::vector<int> storageOf(m_plan.tensors.size(), -1);
    for (int tensor = 0; tensor < static_cast<int>(m_plan.tensors.size()); ++tensor) {
      int& storage = storageOf[toIndex(root(tensor))];
      if (storage < 0) {
        storage = static_cast<int>(m_plan.storages.size());
        const PlanTensor& shown =
            m_plan.tensors[toIndex(m_plan.tensors[toIndex(tensor)].columns ? root(tensor) : tensor)];
        m_plan.storages.push_back(
            {.bytes = shown.isInitialOnly ? 0 : shown.spec.bytes(), .firstStep = -1, .lastStep = -1});
      }
      m_plan.tensors[toIndex(tensor)].storage = storage;
      m_plan.storages[toIndex(storage)].isPersistent |= isPersistent(m_plan.tensors[toIndex(tensor)], m_options);
      m_plan.storages[toIndex(storage)].isOnHost |= m_plan.tensors[toIndex(tensor)].role == TensorRole::Offloaded;
    }
    for (int step = 0; step < static_cast<int>(m_plan.steps.size()); ++step) extendLifetimes(step);
    keepIntegers();
    markSaved();
  }

  void extendLifetimes(int step) {
    for (const StepOperand& operand : m_plan.steps[toIndex(step)].operands) {
      Storage& storage = m_plan.storages[toIndex(m_plan.tensors[toIndex(operand.tensor)].storage)];
      if (storage.firstStep < 0) storage.firstStep = step;
      storage.lastStep = step;
    }
  }

  /// The integers of routing are small, and are read when a run has ended: they tell the load of experts.
  void keepIntegers() {
    for (const PlanTensor& tensor : m_plan.tensors)
      if (tensor.spec.dtype == DType::I64 && tensor.role == TensorRole::Intermediate)
        m_plan.storages[toIndex(tensor.storage)].lastStep = static_cast<int>(m_plan.steps.size()) - 1;
  }

  /// Saved are forward tensors that a backward step reads, apart from quantized weights that outlive the step.
  void markSaved() {
    std::vector<bool> isCounted = inputStorages();
    for (const Step& step : m_plan.steps) {
      if (step.phase != Phase::Backward) continue;
      for (const StepOperand& operand : step.operands) {
        PlanTensor& tensor = m_plan.tensors[toIndex(operand.tensor)];
        const bool isForward = tensor.role == TensorRole::Intermediate || tensor.role == TensorRole::Output;
        if (!isForward || tensor.isKept || operand.access == OperandAccess::Write) continue;
        tensor.isSaved = true;
        const Storage& storage = m_plan.storages[toIndex(tensor.storage)];
        if (!isCounted[toIndex(tensor.storage)]) m_plan.savedForBackwardBytes += storage.bytes;
        isCounted[toIndex(tensor.storage)] = true;
      }
    }
  }

  /// Inputs are the caller's: keeping them for backward costs nothing.
  std::vector<bool> inputStorages() const {
    std::vector<bool> isInput(m_plan.storages.size(), false);
    for (const PlanTensor& tensor : m_plan.tensors)
      if (tensor.role == TensorRole::Input) isInput[toIndex(tensor.storage)] = true;
    return isInput;
  }

  void placeStorages() {
    for (Storage& storage : m_plan.storages) {
      if (!storage.isPersistent && !storage.isOnHost) continue;
      std::int64_t& end = storage.isOnHost ? m_plan.hostBytes : m_plan.persistentBytes;
      storage.offset = end;
      end += alignedBytes(storage.bytes);
    }
    m_isPlaced.assign(m_plan.storages.size(), false);
    std::vector<std::vector<int>> ending(m_plan.steps.size());
    Arena arena;
    for (int step = 0; step < static_cast<int>(m_plan.steps.size()); ++step) placeStep(step, arena, ending);
    m_plan.arenaBytes = arena.sizeBytes();
    for (Storage& storage : m_plan.storages)
      if (!storage.isPersistent && !storage.isOnHost) storage.offset += m_plan.persistentBytes;
  }

  void placeStep(int step, Arena& arena, std::vector<std::vector<int>>& ending) {
    std::vector<int>& dying = ending[toIndex(step)];
    EndingInputs inputs(m_plan, m_plan.steps[toIndex(step)], dying);
    for (const StepOperand& operand : m_plan.steps[toIndex(step)].operands) {
      const int index = m_plan.tensors[toIndex(operand.tensor)].storage;
      Storage& storage = m_plan.storages[toIndex(index)];
      if (storage.isPersistent || storage.isOnHost || storage.firstStep != step || m_isPlaced[toIndex(index)] ||
          operand.access == OperandAccess::Read)
        continue;
      m_isPlaced[toIndex(index)] = true;
      const bool isColumns = static_cast<bool>(m_plan.tensors[toIndex(operand.tensor)].columns);
      const int reused = isColumns ? -1 : inputs.take(m_plan.spec(operand));
      storage.offset = reused >= 0 ? m_plan.storages[toIndex(reused)].offset : arena.allocate(storage.bytes);
      ending[toIndex(storage.lastStep)].push_back(index);
    }
    for (const int index : dying)
      if (!inputs.isTaken(index))
        arena.release(m_plan.storages[toIndex(index)].offset, m_plan.storages[toIndex(index)].bytes);
  }

  Plan& m_plan;
  const std::vector<int>& m_viewOf;
  const PlanOptions& m_options;
  std::vector<bool> m_isPlaced;  // by storage
};

}  // namespace

bool isPersistent(const PlanTensor& tensor, const PlanOptions& options) {
  if (tensor.role == TensorRole::Offloaded) return false;
  const bool isInside = tensor.role == TensorRole::Intermediate || tensor.role == TensorRole::Gradient ||
                        tensor.role == TensorRole::Reloaded;
  return options.keepIntermediates || tensor.isKept || !isInside;
}

void layOutStorages(Plan& plan, const std::vector<int>& viewOf, const PlanOptions& options) {
  StorageLayout(plan, viewOf, options).layOut();
}

}  // namespace fuseline
