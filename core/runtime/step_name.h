// How messages and profilers name a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <string>

namespace fuseline {

/// "fc1.linear (BasicLinear, forward)": how messages name a step.
std::string describe(const Step& step);
/// The first tensor that the step writes: "[4096, 4096] bf16". Empty: none.
std::string firstWritten(const Plan& plan, const Step& step);
/// The name of a step in profilers: describe() with what it writes first.
std::string rangeName(const Plan& plan, const Step& step);

}  // namespace fuseline
