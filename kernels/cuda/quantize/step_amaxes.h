// Amaxes that kernels raise from 0: those of a plan are cleared in one launch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace fuseline::cuda {

struct CompileRequest;

/// The amaxes of one plan, in the order of its steps. Their memory has no other use, so that the first step may clear
/// what later steps raise.
class PlanAmaxes {
 public:
  /// Returns the index of a step's amaxes.
  std::size_t add();
  /// The values are 0 afterwards. With index 0 those of all steps that have run before are cleared; others need a
  /// launch only if they were raised since.
  void clear(std::size_t index, std::span<float> values, Stream stream);

 private:
  struct Entry {
    std::span<float> values;
    bool isClear = false;
  };
  void clearAll(Stream stream);

  std::vector<Entry> m_entries;
};

/// Those of all plans that a backend has compiled steps of. Safe to call from several threads.
class AmaxesByPlan {
 public:
  std::shared_ptr<PlanAmaxes> of(const Plan& plan);

 private:
  std::mutex m_mutex;
  std::map<const Plan*, std::weak_ptr<PlanAmaxes>> m_amaxes;
};

/// The amaxes of one step. A step that runs once clears its own.
class StepAmaxes {
 public:
  StepAmaxes() = default;
  /// count: of floats with separate memory; 0: the plan has memory for them.
  StepAmaxes(const CompileRequest& request, std::size_t count);

  std::span<float> cleared(Stream stream) const;
  /// The same for memory of the plan.
  float* cleared(float* amax, Stream stream) const;

 private:
  void clear(std::span<float> values, Stream stream) const;

  std::shared_ptr<PlanAmaxes> m_plan;  // null: the step is on its own
  std::size_t m_index = 0;
  std::shared_ptr<DeviceMemory> m_memory;
  std::size_t m_count = 0;
};

}  // namespace fuseline::cuda
