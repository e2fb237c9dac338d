// Sample calls of the ops at the ends of a model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/op_samples.h"

#include <string_view>
#include <vector>

namespace fuseline::testing {

/// Calls of Embedding, TiedLinear or CrossEntropy; empty for another op.
std::vector<OpSample> modelSamples(std::string_view operation);

}  // namespace fuseline::testing
