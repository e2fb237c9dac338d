// A step with several implementations, of which the fastest is found by timing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fuseline::cuda {

struct TimedStep {
  std::string key;                            // all that the choice depends on
  std::vector<std::size_t> operandBytes;      // 0: an absent operand
  std::vector<std::uint64_t> workspaceBytes;  // of each implementation
  /// Launches an implementation. Operands are in memory of their own, zeros at first.
  std::function<void(std::size_t way, Pointers operands, std::byte* workspace)> launch;
};

class StepTimer {
 public:
  virtual ~StepTimer() = default;
  /// The fastest implementation on this device; the first one if nothing is timed.
  virtual std::size_t fastest(const TimedStep& step) = 0;
};

}  // namespace fuseline::cuda
