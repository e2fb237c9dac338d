// Longest paths give the columns; a node takes the lane of its main predecessor where that is free.
// SPDX-License-Identifier: Apache-2.0
#include "ui/layout/layered_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace fuseline::ui {

namespace {

/// Lanes of a column. Each that is taken points to one behind it, in paths that are shortened on the way.
class FreeLanes {
 public:
  /// The first free one from `wanted` on.
  std::size_t take(std::size_t wanted) {
    std::size_t free = wanted;
    for (auto next = m_next.find(free); next != m_next.end(); next = m_next.find(free)) free = next->second;
    for (std::size_t lane = wanted; lane != free;) lane = std::exchange(m_next[lane], free + 1);
    m_next[free] = free + 1;
    return free;
  }

 private:
  std::unordered_map<std::size_t, std::size_t> m_next;
};

class Layering {
 public:
  Layering(std::size_t numNodes, const std::vector<LayeredEdge>& edges)
      : m_edges(edges), m_out(numNodes), m_numOpen(numNodes), m_places(numNodes) {
    for (std::size_t i = 0; i < edges.size(); ++i) {
      m_out[edges[i].from].push_back(i);
      ++m_numOpen[edges[i].to];
    }
  }

  std::vector<LayeredPlace> places() && {
    const std::vector<std::size_t> order = orderNodes();
    pullSources(order);
    for (const std::size_t node : order)
      if (!m_pulled.contains(node)) takeLane(node);
    for (const std::size_t node : m_pulled) takeLane(node);  // beside the chain, not in its way
    return std::move(m_places);
  }

 private:
  /// In topological order; nodes of a cycle follow in theirs.
  std::vector<std::size_t> orderNodes() {
    std::vector<std::size_t> order;
    for (std::size_t node = 0; node < m_out.size(); ++node)
      if (m_numOpen[node] == 0) order.push_back(node);
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const std::size_t edge : m_out[order[i]]) {
        const std::size_t to = m_edges[edge].to;
        m_places[to].column = std::max(m_places[to].column, m_places[order[i]].column + 1);
        if (--m_numOpen[to] == 0) order.push_back(to);
      }
    for (std::size_t node = 0; node < m_out.size(); ++node)
      if (m_numOpen[node] > 0) order.push_back(node);
    return order;
  }

  /// An input of an op far along the chain stands before that op.
  void pullSources(const std::vector<std::size_t>& order) {
    for (const std::size_t node : order) {
      if (m_places[node].column > 0 || m_out[node].empty()) continue;
      std::size_t nearest = m_places[m_edges[m_out[node].front()].to].column;
      for (const std::size_t edge : m_out[node]) nearest = std::min(nearest, m_places[m_edges[edge].to].column);
      if (nearest > 1) m_pulled.insert(node);
      if (nearest > 0) m_places[node].column = nearest - 1;
    }
  }

  void takeLane(std::size_t node) {
    const std::size_t lane = m_lanes[m_places[node].column].take(m_wanted.contains(node) ? m_wanted[node] : 0);
    m_places[node].lane = lane;
    bool isFirst = true;
    for (const std::size_t edge : m_out[node]) {
      if (!m_edges[edge].isMain) continue;
      m_wanted.try_emplace(m_edges[edge].to, isFirst ? lane : lane + 1);
      isFirst = false;
    }
  }

  const std::vector<LayeredEdge>& m_edges;
  std::vector<std::vector<std::size_t>> m_out;  // edges from each node
  std::vector<std::size_t> m_numOpen;           // edges into each node whose source has no column yet
  std::vector<LayeredPlace> m_places;
  std::set<std::size_t> m_pulled;               // inputs that stand beside the chain
  std::map<std::size_t, std::size_t> m_wanted;  // lane of a node's main predecessor
  std::map<std::size_t, FreeLanes> m_lanes;     // by column
};

}  // namespace

std::vector<LayeredPlace> layeredPlaces(std::size_t numNodes, const std::vector<LayeredEdge>& edges) {
  return Layering(numNodes, edges).places();
}

}  // namespace fuseline::ui
