// The common parts of the fusions of a Split with rotary embeddings.
// Source: TransformerEngine's fused_apply_rotary_pos_emb for packed tensors (its attention module, not te.ops).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/split_rotary.h"

#include "core/fusion/split_rotary.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

Verdict hasOneDType(const Match& match) {
  const Node& bias = match.node(0);
  const DType x = match.graph.value(bias.inputs.front()).spec.dtype;
  if (bias.parameters.front().dtype == x) return Verdict::yes();
  return Verdict::no(fmt::format("{} adds {} to {}, so the parts become float32. Set its dtype to {}.", bias.id,
                                 dtypeName(bias.parameters.front().dtype), dtypeName(x), dtypeName(x)));
}

std::string summaryOf(FusionPass pass, bool hasBias) {
  if (pass == FusionPass::Forward)
    return fmt::format("One pass over the packed tensor {}splits the result and rotates queries and keys.",
                       hasBias ? "adds the bias, " : "");
  return fmt::format(
      "One pass rotates the gradients of queries and keys back and writes all parts into one gradient{}.",
      hasBias ? ", whose column sums are the bias gradient" : "");
}

}  // namespace

FusionRule splitRotary(FusionPass pass, bool hasBias) {
  FusionRule rule{.pass = pass, .origin = RuleOrigin::Fuseline, .summary = summaryOf(pass, hasBias)};
  if (hasBias) rule.chain.push_back({.role = "bias", .operations = {"Bias"}});
  rule.chain.push_back({.role = "split", .operations = {"Split"}});
  rule.chain.push_back({.role = "rotary", .operations = {"RotaryPositionEmbedding"}, .follows = "split"});
  rule.chain.push_back({.role = "second rotary",
                        .operations = {"RotaryPositionEmbedding"},
                        .repeat = Repeat::Optional,
                        .follows = "split"});
  rule.conditions.push_back({.sentence = "The heads of a part are contiguous.",
                             .holds = [](const Match& match) { return splitsBetweenHeads(match.graph, match.nodes); }});
  if (hasBias)
    rule.conditions.push_back({.sentence = "The bias has the dtype of the packed tensor.", .holds = hasOneDType});
  rule.becomes = "split_rotary";
  return rule;
}

}  // namespace fuseline::rules
