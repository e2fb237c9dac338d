// Conditions that several rules share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"

namespace fuseline::rules {

/// The role's linear does not communicate right after its GEMM ("row") or after its input gradient ("column").
Condition linearModeIsNot(std::string role, std::string mode);
/// The role's op has `in_place` on, or off.
Condition inPlaceIs(std::string role, bool expected);
/// The role's weight is f16 or bf16.
Condition weightIs16Bit(std::string role);
/// The other rule does not take all of these ops. It has no repeated steps.
Condition isNotTakenBy(FusionRule other);
/// Both roles work in the same dtype.
Condition sameDType(std::string roleA, std::string roleB);

}  // namespace fuseline::rules
