// The op's id and its type.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/node_name.h"

#include <fmt/format.h>

namespace fuseline {

std::string nameOf(const Graph& graph, NodeId id) {
  return fmt::format("{} ({})", graph.node(id).id, graph.node(id).operation->name);
}

}  // namespace fuseline
