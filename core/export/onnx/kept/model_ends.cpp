// To and from JSON.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/kept/model_ends.h"

#include "core/document/file_format.h"

#include <algorithm>

namespace fuseline {

namespace {

std::optional<std::string> textAt(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return "";
  return found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

std::optional<std::vector<std::string>> textsAt(const Json& object, const char* name) {
  const auto found = object.find(name);
  std::vector<std::string> texts;
  if (found == object.end()) return texts;
  if (!found->is_array()) return std::nullopt;
  for (const Json& each : *found) {
    if (!each.is_string()) return std::nullopt;
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

std::optional<std::vector<ModelTensor>> tensorsAt(const Json& section, const char* name) {
  const auto found = section.find(name);
  std::vector<ModelTensor> tensors;
  if (found == section.end()) return tensors;
  if (!found->is_array()) return std::nullopt;
  for (const Json& each : *found) {
    if (!each.is_object()) return std::nullopt;
    const auto called = textAt(each, "name"), from = textAt(each, "from");
    if (!called || called->empty() || !from) return std::nullopt;
    tensors.push_back({*called, *from});
  }
  return tensors;
}

Json jsonOf(const std::vector<ModelTensor>& tensors) {
  Json list = Json::array();
  for (const ModelTensor& tensor : tensors) {
    list.push_back({{"name", tensor.name}});
    if (!tensor.from.empty()) list.back()["from"] = tensor.from;
  }
  return list;
}

bool isRenamed(const ModelTensor& tensor) { return !tensor.from.empty() && tensor.from != tensor.name; }

}  // namespace

Json toJson(const ModelEnds& ends) {
  Json section = Json::object();
  if (!ends.nodes.empty() || std::ranges::any_of(ends.modelInputs, isRenamed) ||
      std::ranges::any_of(ends.modelOutputs, isRenamed))
    section = {{"model_inputs", jsonOf(ends.modelInputs)}, {"model_outputs", jsonOf(ends.modelOutputs)}};
  if (!ends.nodes.empty()) section.update({{"inputs", ends.inputs}, {"outputs", ends.outputs}, {"nodes", ends.nodes}});
  if (!ends.constants.empty()) section["constants"] = ends.constants;
  return section;
}

std::optional<ModelEnds> modelEnds(const PipelineDocument& document) {
  const Json file = toJson(document);
  const auto section = file.find(kModelEndsSection);
  if (section == file.end() || !section->is_object()) return std::nullopt;
  const auto nodes = textAt(*section, "nodes");
  const auto inputs = textsAt(*section, "inputs"), outputs = textsAt(*section, "outputs"),
             constants = textsAt(*section, "constants");
  const auto modelInputs = tensorsAt(*section, "model_inputs"), modelOutputs = tensorsAt(*section, "model_outputs");
  if (!nodes || !inputs || !outputs || !constants || !modelInputs || !modelOutputs) return std::nullopt;
  return ModelEnds{*nodes, *inputs, *outputs, *modelInputs, *modelOutputs, *constants};
}

}  // namespace fuseline
