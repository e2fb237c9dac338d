// Minimal pipelines for every rule of the rule set. A new rule needs an entry here, or the conformance suite fails.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <string>
#include <vector>

namespace fuseline::testing {

struct RuleSample {
  std::string label;  // "with bias"
  std::vector<Link> links;
  ChainOptions options;
  Shape shape = {6, 16};
  FusionTarget target;  // without a recipe: that of the options
};

/// Pipelines in which the rule fires, one for every optional step and branch of its chain. Empty for unknown rules.
std::vector<RuleSample> ruleSamples(const std::string& rule);

/// Requests every rule of the catalog that has a price.
RuleSwitches everythingAsked(const RuleCatalog& catalog);

/// A pipeline that fits the rule's chain but fails its condition number `index`.
struct RefusalSample {
  std::size_t condition;
  DType dtype = DType::BF16;
  std::vector<Link> links;
  ChainOptions options;
  Shape shape = {6, 16};
  FusionTarget target;  // without a recipe: that of the options
  int ranks = 1;        // more: the graph is that of the first of them
};
std::vector<RefusalSample> refusalSamples(const std::string& rule);

/// Packed queries, keys and values of two heads of 16 channels, which FP8 attention has, perhaps after a Bias and with
/// rotary embeddings; and the options that quantize them.
std::vector<Link> fp8AttentionLinks(bool hasBias = false, bool hasRotary = false);
/// The same with a linear for each of the three.
struct LinearHeads {
  bool hasBias = false;
  bool hasRotary = false;
  bool hasHeads = false;  // as tensors of heads
  bool hasNorms = false;  // of queries and keys, before they are rotated; needs tensors of heads
};
std::vector<Link> fp8AttentionOfLinears(const LinearHeads& heads);
ChainOptions fp8Attention(std::string recipe);

/// Empty, or the first difference from the reference: beyond the tolerance, or in norm where an FP8 attention may round
/// a probability to the neighboring value.
std::string differenceFromReference(const Graph& graph, const RunResults& actual, const RunResults& expected,
                                    double relative);

}  // namespace fuseline::testing
