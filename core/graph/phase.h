// The passes of a training step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace fuseline {

enum class Phase : std::uint8_t { Forward, Backward, Optimizer };

/// "forward", "backward", "optimizer".
constexpr std::string_view phaseName(Phase phase) {
  switch (phase) {
    case Phase::Forward: return "forward";
    case Phase::Backward: return "backward";
    case Phase::Optimizer: return "optimizer";
  }
  return {};
}

/// Another text is the name of the forward pass.
constexpr Phase phaseNamed(std::string_view name) {
  for (const Phase phase : {Phase::Backward, Phase::Optimizer})
    if (phaseName(phase) == name) return phase;
  return Phase::Forward;
}

}  // namespace fuseline
