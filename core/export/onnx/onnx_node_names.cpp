// Reads paths in names, where a model has them.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_node_names.h"

#include "core/document/json_text.h"
#include "core/export/onnx/name_list.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>

namespace fuseline {

namespace {

std::optional<std::string> valueOf(const ::onnx::StringStringEntryProto& entry, std::string_view key) {
  return entry.key() == key ? std::optional(entry.value()) : std::nullopt;
}

/// Entry of the field metadata_props. A library that is older than the field has kept its bytes.
std::string metadataOf(const ::onnx::NodeProto& node, std::string_view key) {
  constexpr int kMetadata = 9;
  const auto& unknown = node.GetReflection()->GetUnknownFields(node);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    ::onnx::StringStringEntryProto entry;
    if (field.number() != kMetadata || field.type() != field.TYPE_LENGTH_DELIMITED) continue;
    if (!entry.ParseFromString(field.length_delimited())) continue;
    if (auto value = valueOf(entry, key)) return *value;
  }
  const auto* const known = node.GetDescriptor()->FindFieldByNumber(kMetadata);
  if (!known || !known->is_repeated() || known->message_type() != ::onnx::StringStringEntryProto::descriptor())
    return "";
  for (int i = 0; i < node.GetReflection()->FieldSize(node, known); ++i)
    if (auto value = valueOf(dynamic_cast<const ::onnx::StringStringEntryProto&>(
                                 node.GetReflection()->GetRepeatedMessage(node, known, i)),
                             key))
      return *value;
  return "";
}

/// Elements of a list in Python's notation: "['', 'model', 'model.norm', 'mul_3']".
std::vector<std::string> quotedIn(const std::string& list) {
  std::vector<std::string> texts;
  for (std::size_t begin = list.find('\''); begin != std::string::npos;) {
    const std::size_t end = list.find('\'', begin + 1);
    if (end == std::string::npos) break;
    texts.push_back(list.substr(begin + 1, end - begin - 1));
    begin = list.find('\'', end + 1);
  }
  return texts;
}

bool isOfAttention(const ::onnx::NodeProto* node) {
  return node->op_type() == "Softmax" || node->op_type().find("Attention") != std::string::npos;
}

std::string commonStart(const ModelNodes& nodes) {
  std::string common = pathOf(*nodes.front());
  for (const ::onnx::NodeProto* const node : nodes)
    common.erase(std::ranges::mismatch(common, pathOf(*node)).in1, common.end());
  return common;
}

}  // namespace

std::string shown(const std::string& name) { return isUtf8(name) ? shortened(name) : "?"; }

std::string wholeText(const std::string& name) { return isUtf8(name) ? name : "?"; }

std::string pathOf(const ::onnx::NodeProto& node) {
  if (node.name().find('/') != std::string::npos) return node.name();
  const std::vector<std::string> scopes = quotedIn(metadataOf(node, "pkg.torch.onnx.name_scopes"));
  if (scopes.size() < 2 || scopes[scopes.size() - 2].empty()) return node.name();
  std::string module = scopes[scopes.size() - 2];
  std::ranges::replace(module, '.', '/');
  return fmt::format("/{}/{}", module, scopes.back());
}

std::string_view wholeName(std::string_view node) {
  const std::size_t end = node.rfind('/');
  return end == std::string_view::npos || end == 0 ? node : node.substr(0, end);
}

std::string nameOf(const ::onnx::NodeProto& node, const std::string& operation) {
  // Ops that PyTorch writes as a function or an operator, with their names.
  constexpr std::array kInModules = {std::pair("Reshape", "reshape"), std::pair("AddExtraInput", "add"),
                                     std::pair("Formula", "formula"), std::pair("ConstantScale", "scale")};
  const std::string path = pathOf(node);
  if (path.empty()) return operation;
  const std::string whole(wholeName(path));
  const auto* const named = std::ranges::find(kInModules, operation, [](const auto& each) { return each.first; });
  const bool isInModule = named != kInModules.end() && path.starts_with('/') && whole != path;
  return isInModule ? fmt::format("{}/{}", whole, named->second) : whole;
}

std::string nameOf(const ModelNodes& nodes) {
  const std::string common = commonStart(nodes);
  if (nodes.size() == 1 && !common.empty()) return std::string(wholeName(common));
  if (const std::size_t slash = common.rfind('/'); slash != std::string::npos && slash > 0)
    return common.substr(0, slash);
  const bool isSoftmax = nodes.size() == 1 && nodes.back()->op_type() == "Softmax";
  return !isSoftmax && std::ranges::any_of(nodes, isOfAttention) ? "attention" : nodes.back()->op_type();
}

std::string descriptionOf(const ModelNodes& nodes) {
  std::vector<std::string> types;
  for (const ::onnx::NodeProto* const node : nodes)
    if (const std::string type = shown(node->op_type()); std::ranges::find(types, type) == types.end())
      types.push_back(type);
  return fmt::format("{} node{} of the model: {}", nodes.size(), nodes.size() == 1 ? "" : "s", nameList(types));
}

}  // namespace fuseline
