// Slices are sorted by the tensor and axis they cut, then by where they begin.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_slices.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace fuseline {

namespace {

/// The version of Split that requires the number of its outputs.
constexpr std::int64_t kSplitWithCount = 18;

struct SlicePart {
  std::string tensor;
  std::int64_t axis = 0;  // from the front
  std::int64_t begin = 0, end = 0, extent = 0;
};

std::optional<std::int64_t> onlyNumber(const std::optional<OnnxExtents>& values) {
  return values && values->size() == 1 ? values->front().number() : std::nullopt;
}

/// The part that a Slice takes along one axis, without steps.
std::optional<SlicePart> slicePart(const ::onnx::NodeProto& node, const OnnxNodeFacts::Lookup& lookup) {
  if (node.op_type() != "Slice" || !node.domain().empty() || node.output_size() != 1) return std::nullopt;
  OnnxFactSymbols symbols;
  const OnnxNodeFacts facts(node, symbols, lookup);
  const auto begin = onlyNumber(facts.list(1, "starts")), end = onlyNumber(facts.list(2, "ends"));
  const auto axis = onlyNumber(facts.list(3, "axes"));
  const bool isStepless = !facts.has(4) || onlyNumber(facts.input(4).values) == 1;
  if (!begin || !end || !axis || !facts.rank(0) || !isStepless) return std::nullopt;
  const std::optional<std::size_t> place = axisOf(*axis, *facts.rank(0));
  const auto extent = place ? (*facts.shape(0))[*place].number() : std::nullopt;
  if (!extent) return std::nullopt;
  const auto counted = [&](std::int64_t at) { return at < 0 ? at + *extent : std::min(at, *extent); };
  return SlicePart{node.input(0), static_cast<std::int64_t>(*place), counted(*begin), counted(*end), *extent};
}

using PartsByBegin = std::map<std::int64_t, std::pair<SlicePart, int>>;  // with the position of the node

bool areEqualParts(const PartsByBegin& parts) {
  const auto count = static_cast<std::int64_t>(parts.size());
  const std::int64_t extent = parts.begin()->second.first.extent, size = extent / count;
  std::int64_t expected = 0;
  for (const auto& [begin, part] : parts) {
    if (begin != expected || part.first.end != begin + size) return false;
    expected += size;
  }
  return count > 1 && expected == extent;
}

/// Replaces the first Slice.
int writeSplit(::onnx::GraphProto& graph, const PartsByBegin& parts, std::int64_t opset) {
  int first = graph.node_size();
  ::onnx::NodeProto split;
  for (const auto& [begin, part] : parts) {
    first = std::min(first, part.second);
    split.add_output(graph.node(part.second).output(0));
  }
  split.set_op_type("Split");
  split.set_name(graph.node(first).name());
  split.add_input(parts.begin()->second.first.tensor);
  const auto addInteger = [&](const char* name, std::int64_t value) {
    ::onnx::AttributeProto& attribute = *split.add_attribute();
    attribute.set_name(name);
    attribute.set_type(::onnx::AttributeProto::INT);
    attribute.set_i(value);
  };
  addInteger("axis", parts.begin()->second.first.axis);
  if (opset >= kSplitWithCount) addInteger("num_outputs", static_cast<std::int64_t>(parts.size()));
  *graph.mutable_node(first) = std::move(split);
  return first;
}

}  // namespace

void joinSlices(::onnx::GraphProto& graph, const OnnxNodeFacts::Lookup& lookup, std::int64_t opset) {
  std::map<std::pair<std::string, std::int64_t>, PartsByBegin> cuts;
  std::set<const ::onnx::NodeProto*> joined;
  for (int position = 0; position < graph.node_size(); ++position)
    if (const auto part = slicePart(graph.node(position), lookup))
      cuts[{part->tensor, part->axis}].emplace(part->begin, std::pair(*part, position));
  for (const auto& [cut, parts] : cuts) {
    if (!areEqualParts(parts)) continue;
    const int split = writeSplit(graph, parts, opset);
    for (const auto& [begin, part] : parts)
      if (part.second != split) joined.insert(&graph.node(part.second));
  }
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
  for (::onnx::NodeProto& node : *graph.mutable_node())
    if (!joined.contains(&node)) kept.Add()->Swap(&node);
  graph.mutable_node()->Swap(&kept);
}

}  // namespace fuseline
