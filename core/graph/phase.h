// The two passes of training.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace fuseline {

enum class Phase : std::uint8_t { Forward, Backward };

/// "forward", "backward".
constexpr std::string_view phaseName(Phase phase) { return phase == Phase::Forward ? "forward" : "backward"; }

}  // namespace fuseline
