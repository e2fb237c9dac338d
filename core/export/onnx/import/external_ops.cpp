// Groups nodes, and describes each group as an op.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/external_ops.h"

#include "core/export/onnx/name_list.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::string externalsText(std::size_t numNodes, const std::vector<std::string>& externals) {
  const std::string nodes =
      numNodes == 1 ? "1 node without an op" : fmt::format("{} nodes without an op, or between such,", numNodes);
  return fmt::format("{} became {}, which {} not executed: {}. For TransformerEngine, set {} attribute module.", nodes,
                     externals.size() == 1 ? "an External op" : fmt::format("{} External ops", externals.size()),
                     externals.size() == 1 ? "is" : "are", nameList(externals),
                     externals.size() == 1 ? "its" : "their");
}

/// "x", "x2", "x3".
std::string portNumbered(const char* name, std::size_t index) {
  return index == 0 ? name : fmt::format("{}{}", name, index + 1);
}

}  // namespace

void ExternalOps::add() {
  for (const ImportedOperation& each : m_graph.operations)
    if (each.found.attributes.contains("in_features"))
      m_featuresRead[m_graph.reading.source(each.found.inputs[0].second)] =
          each.found.attributes["in_features"].get<std::int64_t>();
  std::vector<GraphPart> parts;
  const std::vector<std::size_t> order = partsInOrder(parts);
  std::set<std::string> given;
  for (const auto& [tensor, port] : m_graph.ports)
    if (!m_graph.made.contains(tensor)) given.insert(tensor);
  std::set<std::size_t> used;
  for (const Region& region : regionsOf(parts, given)) {
    std::vector<std::size_t> members;
    for (const std::size_t part : region.parts) members.push_back(order[part]);
    if (add(region, members)) used.insert(members.begin(), members.end());
  }
  std::vector<LeftOutNode> left;
  for (std::size_t i = 0; i < m_graph.leftOut.size(); ++i)
    if (!used.contains(i)) left.push_back(std::move(m_graph.leftOut[i]));
  m_graph.leftOut = std::move(left);
}

/// In the order of the nodes in the model; returns the number of each among the nodes that are left out.
std::vector<std::size_t> ExternalOps::partsInOrder(std::vector<GraphPart>& parts) const {
  std::multimap<int, std::pair<GraphPart, std::size_t>> byPosition;
  for (const ImportedOperation& each : m_graph.operations) {
    GraphPart part{.isOperation = true, .inputs = {}, .outputs = outputsOf(each.found, each.tensor)};
    for (const auto& [port, tensor] : each.found.inputs) part.inputs.push_back(m_graph.reading.source(tensor));
    byPosition.emplace(each.position, std::pair(std::move(part), std::size_t{0}));
  }
  for (std::size_t i = 0; i < m_graph.leftOut.size(); ++i)
    byPosition.emplace(m_graph.leftOut[i].position, std::pair(m_graph.leftOut[i].part, i));
  std::vector<std::size_t> order;
  for (auto& [position, part] : byPosition) {
    parts.push_back(std::move(part.first));
    order.push_back(part.second);
  }
  return order;
}

/// False: none of its inputs is known, or the model does not declare the shapes of its outputs.
bool ExternalOps::add(const Region& region, const std::vector<std::size_t>& members) {
  const auto isKnown = [this](const std::string& tensor) { return GraphBorder::isInput(m_graph.reading.type(tensor)); };
  const bool isMisfit = m_known.tensors.contains(region.outputs.front());
  if (isMisfit || !std::ranges::all_of(region.outputs, isKnown)) return false;
  FoundOperation found{.operation = "External"};
  for (const std::string& tensor : region.inputs) {
    // The output of a group that is left out becomes an input, as for other ops.
    if (!m_graph.ports.contains(tensor) && !m_border.cutInput(tensor, found)) return false;
    found.inputs.emplace_back(portNumbered("x", found.inputs.size()), tensor);
  }
  ModelNodes nodes;
  for (const std::size_t member : members) nodes.push_back(m_graph.leftOut[member].node);
  const std::string id = m_graph.ids.of(nameOf(nodes));
  std::optional<KeptNodes> kept = nodesToKeep(region, found);
  found.attributes = attributesOf(found, region.outputs, nodes);
  if (kept) found.attributes["nodes"] = std::move(kept->text);
  if (kept)
    for (KeptConstant& constant : kept->constants) m_constants.emplace_back(id, std::move(constant));
  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    m_graph.ports.emplace(region.outputs[i], fmt::format("{}.{}", id, portNumbered("y", i)));
    m_graph.made.insert(region.outputs[i]);
    m_tensors.insert(region.outputs[i]);
  }
  m_numNodes += members.size();
  m_ids.push_back(id);
  m_graph.operations.push_back({.id = id,
                                .tensor = region.outputs.front(),
                                .found = std::move(found),
                                .position = m_graph.reading.position(region.outputs.front())});
  return true;
}

/// So that an export to ONNX can write them again. Tensors whose shapes alone they read become further inputs.
std::optional<KeptNodes> ExternalOps::nodesToKeep(const Region& region, FoundOperation& found) const {
  KeptRange range{.outputs = region.outputs};
  for (const auto& [port, tensor] : found.inputs) range.inputs.push_back(tensor);
  const auto keep = [&] { return keepNodes(m_graph.reading, m_source.opsets, range, m_graph.ports, m_source.folder); };
  if (std::optional<KeptNodes> kept = keep()) return kept;
  for (const auto& [tensor, port] : m_graph.ports)
    if (m_graph.made.contains(tensor)) range.madeByOps.insert(tensor);
  std::optional<KeptNodes> kept = keep();
  if (!kept) return kept;
  for (std::size_t i = found.inputs.size(); i < kept->inputs.size(); ++i)
    found.inputs.emplace_back(portNumbered("x", i), kept->inputs[i]);
  return kept;
}

Json ExternalOps::attributesOf(const FoundOperation& found, const std::vector<std::string>& made,
                               const ModelNodes& nodes) {
  std::vector<std::string> others, outputs;
  for (std::size_t i = 1; i < found.inputs.size(); ++i) others.push_back(found.inputs[i].first);
  for (std::size_t i = 0; i < made.size(); ++i)
    outputs.push_back(fmt::format("{} = {}", portNumbered("y", i), declared(made[i], found.inputs.front().second)));
  Json attributes = Json::object();
  if (!others.empty()) attributes["inputs"] = fmt::format("{}", fmt::join(others, ", "));
  attributes["outputs"] = fmt::format("{}", fmt::join(outputs, ", "));
  attributes["description"] = descriptionOf(nodes);
  return attributes;
}

/// "[batch, 64]", with the dtype where it is not known to be that of x: in a model of several, nodes may convert it.
std::string ExternalOps::declared(const std::string& tensor, const std::string& x) {
  const ::onnx::TypeProto::Tensor& type = *m_graph.reading.type(tensor);
  Json extents = m_graph.symbols.shapeOf(type.shape());
  if (const auto known = m_featuresRead.find(tensor); known != m_featuresRead.end() && !extents.empty())
    extents.back() = known->second;
  std::vector<std::string> texts;
  for (const Json& extent : extents) texts.push_back(extent.is_string() ? extent.get<std::string>() : extent.dump());
  const std::optional<DType> dtype = m_border.dtypeOf(tensor);
  const bool isOfX = m_border.dtypeOf(x) == dtype && !m_graph.reading.isMixed();
  return fmt::format("[{}]{}{}", fmt::join(texts, ", "), isOfX ? "" : " ",
                     isOfX ? "" : dtypeName(dtype.value_or(*floatTypeOf(type.elem_type()))));
}

std::string ExternalOps::note(const FoldedPlaces& places) const {
  std::string note = externalsText(m_numNodes, places.of(m_ids));
  if (!m_border.drawnOutputs().empty())
    note += fmt::format(" Outputs of the model that an External op computes are left out: {}.",
                        nameList(m_border.drawnOutputs()));
  return note;
}

}  // namespace fuseline
