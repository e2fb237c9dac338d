// Attention that reads packed queries, keys and values where the projection wrote them.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/packed_attention.h"
#include "core/fusion/rule.h"
#include "core/quant/attention_quantizers.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

ChainStep rotary(std::string role) {
  return {.role = std::move(role),
          .operations = {"RotaryPositionEmbedding"},
          .repeat = Repeat::Optional,
          .follows = "split"};
}

/// The packed tensor in place of its parts.
std::vector<MemberTensor> keptTensors(const Match& match) {
  const int attention = static_cast<int>(match.nodes.size()) - 1;
  std::vector<MemberTensor> kept = {{0, {OperandKind::Input, 0}}};
  for (const SavedTensor& tensor : match.node(match.nodes.size() - 1).context.tensors)
    if (tensor.kind != OperandKind::Input || tensor.slot > AttentionForm::kValue) kept.push_back({attention, tensor});
  return kept;
}

/// Quantized tensors are contiguous.
Verdict readsPlainHeads(const Match& match) {
  const Node& attention = match.node(match.nodes.size() - 1);
  if (!isQuantizedAttention(attention)) return Verdict::yes();
  return Verdict::no(fmt::format(
      "The recipe quantizes the queries, keys and values of {}, so it does not read the packed tensor.", attention.id));
}

}  // namespace

FusionRule forward_backward_split_attention() {
  const auto asked = [](auto verdict) {
    return [verdict](const Match& match) { return verdict(match.graph, match.nodes); };
  };
  return {
      .name = "ForwardBackwardSplitAttention",
      .pass = FusionPass::Joint,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "Saves the copies of Split: attention reads queries, keys and values by stride from the projection's output, "
          "rotates them if there are rotary embeddings, and writes their gradients into one tensor.",
      .chain = {{.role = "split", .operations = {"Split"}},
                rotary("rotary of queries"),
                rotary("rotary of keys"),
                {.role = "attention", .operations = {"DotProductAttention"}, .follows = "rotary of queries"}},
      .conditions = {{.sentence = "Queries, keys and values are the three parts of the split, each read once.",
                      .holds = asked(readsThreeParts)},
                     {.sentence = "Rotary embeddings count positions along the tokens of attention.",
                      .holds = asked(rotatesByTokens)},
                     {.sentence = "Queries, keys and values are not quantized.", .holds = readsPlainHeads}},
      .becomes = "split_attention",
      .saves = keptTensors,
      .servesInference = true,
  };
}

}  // namespace fuseline::rules
