// Moves the first element of a Dropout.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/row_attributes.h"

#include "core/ops/rank_attributes.h"

namespace fuseline {

Attributes attributesFromRow(const Graph& graph, NodeId id, std::int64_t firstRow) {
  const Node& node = graph.node(id);
  Attributes attributes = node.attributes;
  if (firstRow == 0 || node.operation->name != "Dropout") return attributes;
  const std::int64_t first =
      attributes.has(kFirstElementAttribute) ? attributes.integer(kFirstElementAttribute) : std::int64_t{0};
  attributes.set(kFirstElementAttribute, first + firstRow * graph.spec(id, OperandKind::Input, 0).cols());
  return attributes;
}

}  // namespace fuseline
