// Follows the wires from a Split to its attention.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/packed_attention.h"

#include "core/fusion/node_name.h"
#include "core/ops/rotary_form.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::array<const char*, 3> kParts = {"queries", "keys", "values"};

const Node& splitOf(const Graph& graph, std::span<const NodeId> members) { return graph.node(members.front()); }
const Node& attentionOf(const Graph& graph, std::span<const NodeId> members) { return graph.node(members.back()); }

/// The member that produces a value; -1: none.
int producerAmong(const Graph& graph, std::span<const NodeId> members, ValueId value) {
  const auto found = std::ranges::find(members, graph.value(value).producer);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

/// Source of one input of the attention.
struct PartSource {
  ValueId value = -1;  // an output of the split, or what else the attention reads
  int rotary = -1;
};

PartSource sourceOf(const Graph& graph, std::span<const NodeId> members, std::size_t slot) {
  PartSource source{.value = attentionOf(graph, members).inputs[slot]};
  const int producer = producerAmong(graph, members, source.value);
  if (producer <= 0) return source;
  source.rotary = producer;
  source.value = graph.node(members[static_cast<std::size_t>(producer)]).inputs.front();
  return source;
}

std::int64_t sumOfWidths(const Graph& graph, const Node& split, std::size_t count) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += graph.value(split.outputs[i]).spec.cols();
  return sum;
}

Verdict rotatesLike(const Graph& graph, const Node& rotary, const AttentionForm& form) {
  const RotaryForm own = rotaryForm(rotary.attributes);
  if (own.cuSeqlensSlot >= 0 || own.startPositionsSlot >= 0)
    return Verdict::no(fmt::format(
        "{} has positions as an input; in fused attention a position is the token's index plus a fixed offset.",
        nameOf(graph, graph.findNode(rotary.id))));
  if (own.format == form.format && own.dim == form.qkChannels) return Verdict::yes();
  return Verdict::no(fmt::format(
      "{} has tensor_format {} and heads of {} channels, but attention has {} and {}. Set them to the same values.",
      rotary.id, rotary.attributes.text("tensor_format"), own.dim,
      form.format == QkvFormat::Bshd   ? "bshd"
      : form.format == QkvFormat::Sbhd ? "sbhd"
                                       : "thd",
      form.qkChannels));
}

}  // namespace

AttentionPlaces ownPlaces() {
  AttentionPlaces places;
  for (int slot = 0; slot < 3; ++slot)
    places.heads[static_cast<std::size_t>(slot)] = {.input = {0, OperandKind::Input, slot},
                                                    .gradient = {0, OperandKind::GradInput, slot}};
  return places;
}

Verdict readsThreeParts(const Graph& graph, std::span<const NodeId> members) {
  const Node& split = splitOf(graph, members);
  if (split.outputs.size() != kParts.size())
    return Verdict::no(
        fmt::format("{} has {} outputs; expected three: queries, keys and values.", split.id, split.outputs.size()));
  for (std::size_t slot = 0; slot < kParts.size(); ++slot) {
    const PartSource source = sourceOf(graph, members, slot);
    const bool isPart = source.value == split.outputs[slot] && graph.value(source.value).uses.size() == 1;
    if (!isPart)
      return Verdict::no(fmt::format("{} of {} are {}; expected part {} of {}, without other consumers.", kParts[slot],
                                     attentionOf(graph, members).id,
                                     graph.value(attentionOf(graph, members).inputs[slot]).name, slot + 1, split.id));
    if (slot == AttentionForm::kValue && source.rotary >= 0)
      return Verdict::no(fmt::format("{} rotates the values, but attention needs them unrotated.",
                                     graph.node(members[static_cast<std::size_t>(source.rotary)]).id));
  }
  return Verdict::yes();
}

Verdict rotatesByTokens(const Graph& graph, std::span<const NodeId> members) {
  const AttentionForm form = attentionForm(attentionOf(graph, members).attributes);
  for (const NodeId member : members.subspan(1, members.size() - 2))
    if (const Verdict verdict = rotatesLike(graph, graph.node(member), form); !verdict) return verdict;
  return Verdict::yes();
}

PackedAttention packedAttention(const Graph& graph, std::span<const NodeId> members) {
  const Node& split = splitOf(graph, members);
  const Node& attention = attentionOf(graph, members);
  const std::vector<TensorSpec> inputs = graph.inputSpecs(members.back());
  const Shape shapes[] = {inputs[0].shape, inputs[1].shape, inputs[2].shape};
  const AttentionForm form = attentionForm(attention.attributes);
  PackedAttention packed{.layouts = *attentionLayouts(form, shapes)};
  packed.places.attention = static_cast<int>(members.size()) - 1;
  const std::int64_t rowElements = sumOfWidths(graph, split, split.outputs.size());
  TokenLayout* const layouts[] = {&packed.layouts.q, &packed.layouts.k, &packed.layouts.v};
  for (std::size_t slot = 0; slot < kParts.size(); ++slot) {
    *layouts[slot] = layouts[slot]->inRows(graph.value(split.outputs[slot]).spec.cols(), rowElements);
    packed.places.heads[slot] = {.input = {0, OperandKind::Input, 0},
                                 .gradient = {0, OperandKind::GradInput, 0},
                                 .firstElement = sumOfWidths(graph, split, slot),
                                 .rotary = sourceOf(graph, members, slot).rotary};
  }
  return packed;
}

}  // namespace fuseline
