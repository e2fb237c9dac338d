// MemoryProfile: what of a plan's memory is in use at each step, and what forward keeps for backward.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// What memory is held for. The first three are there during the whole plan.
enum class MemoryPurpose {
  Parameters,          // and the states of quantizers, and copies that are made once
  ParameterGradients,  // and the buffers that they are added to
  InputsAndOutputs,    // and their gradients
  Kept,                // by forward for backward
  Passing              // from one step to another of the same pass
};
inline constexpr std::size_t kNumMemoryPurposes = 5;

/// "kept for backward"
std::string_view purposeName(MemoryPurpose purpose);

/// Bytes of the device that hold something while a step runs.
struct StepMemory {
  int step = 0;  // index into Plan::steps
  std::array<std::int64_t, kNumMemoryPurposes> bytes{};

  std::int64_t of(MemoryPurpose purpose) const { return bytes[static_cast<std::size_t>(purpose)]; }
  std::int64_t total() const { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }
};

/// A piece of memory that forward keeps for backward.
struct KeptTensor {
  int tensor = -1;  // index into Plan::tensors: the first one that lies there
  std::int64_t bytes = 0;
  int firstStep = 0;  // makes it
  int lastStep = 0;   // reads it last
  /// Ops whose backward reads it, in forward order.
  std::vector<NodeId> readers;
  bool isOnHost = false;
};

struct MemoryProfile {
  /// Of the steps that are launched in every run, in their order.
  std::vector<StepMemory> steps;
  std::size_t peak = 0;  // index into steps: the first with the largest total
  /// By their first readers. Together, where they are not on the host, Plan::savedForBackwardBytes.
  std::vector<KeptTensor> kept;

  std::int64_t peakBytes() const { return steps.empty() ? 0 : steps[peak].total(); }
};

/// Linear in the plan, but for sorting. What is in use is at most Plan::peakBytes(): the plan's memory is allocated
/// once, and has gaps.
MemoryProfile memoryProfile(const Plan& plan);

/// A line a step, and a line for each tensor that is kept. Deterministic.
std::string toString(const MemoryProfile& profile, const Plan& plan, const Graph& graph);

}  // namespace fuseline
