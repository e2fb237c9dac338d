// A layered layout in linear time, for graphs that Graphviz would take minutes for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace fuseline::ui {

struct LayeredEdge {
  std::size_t from = 0;
  std::size_t to = 0;
  bool isMain = true;  // kept straight where possible
};

/// Column (layer) and lane of a node. Lane 0 is the straight main line; others are below it.
struct LayeredPlace {
  std::size_t column = 0;
  std::size_t lane = 0;
};

/// Every edge leads to a later column, and no two nodes share a column and a lane. Edges that close a cycle are left
/// out of account.
std::vector<LayeredPlace> layeredPlaces(std::size_t numNodes, const std::vector<LayeredEdge>& edges);

}  // namespace fuseline::ui
