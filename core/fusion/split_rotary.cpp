// Follows the outputs of a Split to their rotary embeddings.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/split_rotary.h"

#include "core/ops/rotary_form.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

bool isNamed(const Graph& graph, NodeId id, std::string_view operation) {
  return graph.node(id).operation->name == operation;
}

/// The member that reads a value; -1: none.
int readerAmong(const Graph& graph, std::span<const NodeId> members, ValueId value) {
  for (const Use& use : graph.value(value).uses)
    if (const auto found = std::ranges::find(members, use.node); found != members.end())
      return static_cast<int>(found - members.begin());
  return -1;
}

/// Its part is the whole.
SplitRotary loneRotary(const Graph& graph, NodeId rotary) {
  const RotaryForm form = rotaryForm(graph.node(rotary).attributes);
  const TokenLayout layout = *rotaryLayout(form, graph.inputSpecs(rotary).front().shape);  // inferred before
  const std::int64_t width = layout.heads * layout.channels;
  return {.width = width,
          .parts = {{.output = {0, OperandKind::Output, 0},
                     .gradient = {0, OperandKind::GradOutput, 0},
                     .rotary = 0,
                     .width = width}}};
}

}  // namespace

SplitRotary splitRotary(const Graph& graph, std::span<const NodeId> members) {
  if (isNamed(graph, members.front(), "RotaryPositionEmbedding")) return loneRotary(graph, members.front());
  SplitRotary found;
  if (isNamed(graph, members.front(), "Bias")) found.bias = found.split++;
  const Node& split = graph.node(members[static_cast<std::size_t>(found.split)]);
  for (int slot = 0; slot < static_cast<int>(split.outputs.size()); ++slot) {
    const ValueId value = split.outputs[static_cast<std::size_t>(slot)];
    const int rotary = readerAmong(graph, members, value);
    const int member = rotary < 0 ? found.split : rotary;
    const int port = rotary < 0 ? slot : 0;
    found.parts.push_back({.output = {member, OperandKind::Output, port},
                           .gradient = {member, OperandKind::GradOutput, port},
                           .rotary = rotary,
                           .first = found.width,
                           .width = graph.value(value).spec.cols()});
    found.width += found.parts.back().width;
  }
  return found;
}

Verdict splitsBetweenHeads(const Graph& graph, std::span<const NodeId> members) {
  for (const NodeId id : members) {
    if (!isNamed(graph, id, "RotaryPositionEmbedding")) continue;
    const std::size_t numAxes = rotaryForm(graph.node(id).attributes).format == QkvFormat::Thd ? 2 : 3;
    const Value& part = graph.value(graph.node(id).inputs.front());
    if (part.spec.shape.size() != numAxes)
      return Verdict::no(
          fmt::format("{} of shape {} is a part of each head, so its heads are not contiguous. Put all queries first, "
                      "then all keys, then all values.",
                      part.name, toString(part.spec.shape)));
  }
  return Verdict::yes();
}

}  // namespace fuseline
