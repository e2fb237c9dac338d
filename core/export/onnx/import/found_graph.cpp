// Nodes that are no ops, and the consumers of tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/found_graph.h"

#include "core/export/onnx/name_list.h"
#include "core/export/onnx/onnx_node_names.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

void Misfits::add(const std::string& tensor, const std::string& why) {
  if (tensors.empty()) reason = why;
  tensors.insert(tensor);
}

/// A node that requests only a shape needs no values.
void FoundGraph::leaveOut(const ::onnx::NodeProto& node, const std::string& tensor,
                          const std::vector<std::string>& inputs) {
  LeftOutNode left{
      .name = fmt::format("{} ({})", shown(node.name().empty() ? tensor : node.name()), shown(node.op_type())),
      .node = &node,
      .position = reading.position(tensor)};
  if (node.op_type() != "Shape")
    for (const std::string& input : inputs) left.part.inputs.push_back(reading.source(input));
  left.part.outputs.assign(node.output().begin(), node.output().end());
  leftOut.push_back(std::move(left));
}

void FoundGraph::sortOperations() { std::ranges::stable_sort(operations, {}, &ImportedOperation::position); }

TensorUses FoundGraph::uses() const {
  TensorUses uses;
  for (const ImportedOperation& each : operations)
    for (const auto& [port, tensor] : each.found.inputs) ++uses[reading.source(tensor)];
  for (const LeftOutNode& left : leftOut)
    for (const std::string& tensor : left.part.inputs) ++uses[tensor];
  for (const auto& output : reading.graph().output()) ++uses[reading.source(output.name())];
  return uses;
}

std::string FoundGraph::unknownText(const char* orBetween) const {
  std::vector<std::string> names;
  for (const LeftOutNode& left : leftOut) names.push_back(left.name);
  std::vector<std::string> sentences;
  if (!names.empty())
    sentences.push_back(fmt::format("{} of {} nodes have no op in Fuseline{}: {}.", names.size(),
                                    reading.graph().node_size(), orBetween, nameList(names)));
  if (!unknown.empty()) sentences.push_back(fmt::format("No node produces {}.", nameList(unknown)));
  return fmt::format("{}", fmt::join(sentences, " "));
}

std::vector<std::string> outputsOf(const FoundOperation& found, const std::string& tensor) {
  return found.outputs.empty() ? std::vector{tensor} : found.outputs;
}

}  // namespace fuseline
