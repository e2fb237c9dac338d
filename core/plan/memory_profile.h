// MemoryProfile: the part of a plan's memory in use at each step, and the tensors that forward keeps for backward.
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

/// Purpose of memory. The first four are in use during the whole plan.
enum class MemoryPurpose {
  Parameters,          // and the states of quantizers, and quantized tensors that are produced once
  ParameterGradients,  // and the buffers that they are added to
  OptimizerState,
  InputsAndOutputs,  // and their gradients
  Kept,              // by forward for backward
  Passing            // from one step to another of the same pass
};
inline constexpr std::size_t kNumMemoryPurposes = 6;

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
  int tensor = -1;  // index into Plan::tensors: the first one in this memory
  std::int64_t bytes = 0;
  int firstStep = 0;  // producer
  int lastStep = 0;   // last consumer
  /// Ops with a backward that reads it, in forward order.
  std::vector<NodeId> readers;
  bool isOnHost = false;
};

struct MemoryProfile {
  /// The steps that are launched in every run, in their order.
  std::vector<StepMemory> steps;
  std::size_t peak = 0;  // index into steps: the first with the largest total
  /// By their first readers. Together, without those on the host, Plan::savedForBackwardBytes.
  std::vector<KeptTensor> kept;

  std::int64_t peakBytes() const { return steps.empty() ? 0 : steps[peak].total(); }
};

/// Linear in the plan, except for sorting. Memory in use is at most Plan::peakBytes(): the plan's memory is allocated
/// once, and has gaps.
MemoryProfile memoryProfile(const Plan& plan);

/// One line per step, and one for each kept tensor. Deterministic.
std::string toString(const MemoryProfile& profile, const Plan& plan, const Graph& graph);

}  // namespace fuseline
