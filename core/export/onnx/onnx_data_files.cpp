// Initializers and constants name them, in branches and functions, too.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_data_files.h"

#include "core/export/onnx/onnx_proto.h"
#include "core/support/read_file.h"

#include <set>
#include <string>
#include <system_error>

namespace fuseline {

namespace {

using Locations = std::set<std::string>;

void addLocation(const ::onnx::TensorProto& tensor, Locations& locations) {
  if (tensor.data_location() != ::onnx::TensorProto::EXTERNAL) return;
  for (const auto& entry : tensor.external_data())
    if (entry.key() == "location") locations.insert(entry.value());
}

void addLocations(const ::onnx::GraphProto& graph, Locations& locations);

void addLocations(const ::onnx::NodeProto& node, Locations& locations) {
  for (const auto& attribute : node.attribute()) {
    addLocation(attribute.t(), locations);
    for (const auto& tensor : attribute.tensors()) addLocation(tensor, locations);
    if (attribute.has_g()) addLocations(attribute.g(), locations);
    for (const auto& graph : attribute.graphs()) addLocations(graph, locations);
  }
}

void addLocations(const ::onnx::GraphProto& graph, Locations& locations) {
  for (const auto& tensor : graph.initializer()) addLocation(tensor, locations);
  for (const auto& node : graph.node()) addLocations(node, locations);
}

}  // namespace

std::vector<std::filesystem::path> onnxDataFiles(const std::filesystem::path& model) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(model, ignored)) return {};
  const Result<std::string> bytes = readWholeFile(model, {.what = "ONNX model", .maxMiB = 2048});
  ::onnx::ModelProto message;
  if (!bytes || !message.ParseFromString(*bytes)) return {};
  Locations locations;
  addLocations(message.graph(), locations);
  for (const auto& function : message.functions())
    for (const auto& node : function.node()) addLocations(node, locations);
  std::vector<std::filesystem::path> files;
  for (const std::string& location : locations) files.push_back(model.parent_path() / location);
  return files;
}

}  // namespace fuseline
