// PortValues: the tensors at the ports of a document's nodes, found once for all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/edit.h"
#include "core/graph/graph.h"

#include <string_view>
#include <unordered_map>

namespace fuseline {

/// On one of several ranks the output of a row-parallel GEMM is a term of a sum; its op gives the sum, which is this
/// value. Else the value itself.
const Value& summedOverRanks(const Graph& graph, const Value& value);

class PortValues {
 public:
  /// The graph outlives this.
  explicit PortValues(const Graph& graph);
  /// graph: that of one rank, made of the `whole` document's, which knows the ports of instances.
  PortValues(const Graph& graph, const Graph& whole);

  /// The same as valueAt(): nullptr when it could not be inferred.
  const Value* at(const Endpoint& endpoint) const;

 private:
  const Graph& m_graph;
  const Graph& m_whole;
  std::unordered_map<std::string_view, const Value*> m_byName;
  std::unordered_map<std::string_view, const Node*> m_lastAt;  // by path: of a composite, the op with its outputs
};

}  // namespace fuseline
