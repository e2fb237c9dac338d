// Pipelines that RapidCheck draws.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"
#include "tests/support/pipelines.h"
#include "tests/support/rule_samples.h"

#include <vector>

namespace fuseline::testing {

/// Parts of a random pipeline: kinds of ops, branches that later adds may read, frozen inputs and parameters, main_grad
/// buffers, activation offload, nested Sequentials, switched-off rules.
struct RandomPipeline {
  std::vector<Link> links;
  ChainOptions options;
  RuleSwitches switches = everythingAsked(builtinRules());
};

/// Draws one, for an input with rows of 16 elements. Only within a RapidCheck property.
RandomPipeline randomPipeline();

}  // namespace fuseline::testing
