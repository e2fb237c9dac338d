// OperationSearch: finds the ops of a graph, from its outputs to its inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/import/found_graph.h"

#include <deque>
#include <optional>
#include <set>
#include <string>

namespace fuseline {

class OperationSearch {
 public:
  /// Both must outlive the search.
  OperationSearch(FoundGraph& graph, const Misfits& known) : m_graph(graph), m_known(known) {}

  /// Adds ops without ids, in execution order, and nodes that are none. Inputs have ports already. dtype: of the
  /// pipeline's first input.
  void run(std::optional<DType> dtype);
  /// Does an op have weights of another dtype?
  bool isMixed() const { return m_isMixed; }

 private:
  std::optional<FoundOperation> operationOf(const std::string& tensor);
  bool computesFloats(const std::string& tensor) const;
  void add(const std::string& tensor, FoundOperation found);
  void addUnknown(const std::string& tensor, std::deque<std::string>& wanted);

  FoundGraph& m_graph;
  const Misfits& m_known;
  std::optional<DType> m_dtype;
  bool m_isMixed = false;
  std::set<std::string> m_seen;
  std::set<const ::onnx::NodeProto*> m_unknownNodes;
};

/// Leaves ops between nodes that are none out, too, unless a layer is among them: a scale within attention.
void leaveOutIslands(FoundGraph& graph);

}  // namespace fuseline
