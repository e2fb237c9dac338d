// Attempts that end at the same op for the same reason, reported once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// Rules that begin with one op and need another op after it than the one that follows.
struct BrokenChains {
  const Attempt* first = nullptr;
  std::string reason;      // "fc1 (BasicLinear) is followed by act (GELU)"
  std::string rulesNeeds;  // "Bias for ForwardLinearBiasAdd; ConstantScale for ForwardLinearScaleAdd, ..."
};

/// Attempts of one reason together, in the order of the first ones; every attempt but a chain that ends at its first op
/// is by itself.
std::vector<std::vector<const Attempt*>> groupedByReason(std::span<const Attempt* const> attempts);

/// attempts: those of one reason, two or more.
BrokenChains brokenChains(std::span<const Attempt* const> attempts);

}  // namespace fuseline
