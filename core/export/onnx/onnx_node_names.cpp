// Reads paths in names, where a model has them.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_node_names.h"

#include "core/document/json_text.h"
#include "core/export/onnx/name_list.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

bool isOfAttention(const ::onnx::NodeProto* node) {
  return node->op_type() == "Softmax" || node->op_type().find("Attention") != std::string::npos;
}

std::string commonStart(const ModelNodes& nodes) {
  std::string common = nodes.front()->name();
  for (const ::onnx::NodeProto* const node : nodes)
    common.erase(std::ranges::mismatch(common, node->name()).in1, common.end());
  return common;
}

}  // namespace

std::string shown(const std::string& name) { return isUtf8(name) ? shortened(name) : "?"; }

std::string_view wholeName(std::string_view node) {
  const std::size_t end = node.rfind('/');
  return end == std::string_view::npos || end == 0 ? node : node.substr(0, end);
}

std::string nameOf(const ModelNodes& nodes) {
  const std::string common = commonStart(nodes);
  if (nodes.size() == 1 && !common.empty()) return common;
  if (const std::size_t slash = common.rfind('/'); slash != std::string::npos && slash > 0)
    return common.substr(0, slash);
  return std::ranges::any_of(nodes, isOfAttention) ? "attention" : nodes.back()->op_type();
}

std::string descriptionOf(const ModelNodes& nodes) {
  std::vector<std::string> types;
  for (const ::onnx::NodeProto* const node : nodes)
    if (const std::string type = shown(node->op_type()); std::ranges::find(types, type) == types.end())
      types.push_back(type);
  return fmt::format("{} node{} of the model: {}", nodes.size(), nodes.size() == 1 ? "" : "s", nameList(types));
}

}  // namespace fuseline
