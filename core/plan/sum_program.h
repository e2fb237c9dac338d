// The program of an "accumulate" step: the sum of the gradients that meet at a branch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

namespace fuseline {

/// Adds up, in float32, all that the step reads, and rounds once.
ElementwiseProgram sumProgram(const Step& step);

}  // namespace fuseline
