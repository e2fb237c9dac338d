// ExternalOps: ops External, which stand for nodes between ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/import/folded_places.h"
#include "core/export/onnx/import/graph_border.h"
#include "core/export/onnx/kept/kept_nodes.h"
#include "core/export/onnx/onnx_node_names.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

/// The model that nodes are kept from.
struct KeptSource {
  const OnnxOpsets& opsets;
  std::filesystem::path folder;  // of external data
};

class ExternalOps {
 public:
  /// All references must outlive it.
  ExternalOps(FoundGraph& graph, GraphBorder& border, const Misfits& known, KeptSource source)
      : m_graph(graph), m_border(border), m_known(known), m_source(std::move(source)) {}

  /// One op for each group of nodes that computes with outputs of ops, for other ops. Ops have names already.
  void add();

  /// Outputs of these ops.
  const std::set<std::string>& tensors() const { return m_tensors; }
  /// By ids of the ops.
  const std::vector<std::pair<std::string, KeptConstant>>& constants() const { return m_constants; }
  bool isEmpty() const { return m_ids.empty(); }
  std::string note(const FoldedPlaces& places) const;

 private:
  std::vector<std::size_t> partsInOrder(std::vector<GraphPart>& parts) const;
  bool add(const Region& region, const std::vector<std::size_t>& members);
  std::optional<KeptNodes> nodesToKeep(const Region& region, FoundOperation& found) const;
  Json attributesOf(const FoundOperation& found, const std::vector<std::string>& made, const ModelNodes& nodes);
  std::string declared(const std::string& tensor, const std::string& x);

  FoundGraph& m_graph;
  GraphBorder& m_border;
  const Misfits& m_known;
  KeptSource m_source;
  std::vector<std::string> m_ids;
  std::set<std::string> m_tensors;
  std::vector<std::pair<std::string, KeptConstant>> m_constants;
  std::size_t m_numNodes = 0;
  std::map<std::string, std::int64_t> m_featuresRead;  // the last extent of a tensor, by a layer
};

}  // namespace fuseline
