// Weighted interval scheduling on a forest.
//
// A chain follows each op's only consumer, so all candidates together form trees with the last ops as roots: an op has
// one successor, but an op with two inputs has two predecessors. On a line this is the textbook dynamic program over
// intervals. Greedy choices, by gain or by length, would miss that two short fusions may gain more than the longest.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/selection.h"

#include <algorithm>
#include <cassert>

namespace fuseline {

namespace {

class SetChooser {
 public:
  SetChooser(std::span<const Candidate> candidates, std::size_t numNodes, const DeviceModel& device)
      : m_candidates(candidates),
        m_device(device),
        m_next(numNodes, -1),
        m_before(numNodes),
        m_best(numNodes),
        m_choice(numNodes, -1),
        m_endingAt(numNodes) {}

  std::vector<std::size_t> choose() {
    for (std::size_t index = 0; index < m_candidates.size(); ++index) link(index);
    for (std::size_t node = 0; node < m_best.size(); ++node) settle(node);
    return chosen();
  }

 private:
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

  void link(std::size_t index) {
    const std::span<const NodeId> nodes = m_candidates[index].nodes;
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
      assert(m_next[at(nodes[i])] < 0 || m_next[at(nodes[i])] == nodes[i + 1]);
      m_next[at(nodes[i])] = nodes[i + 1];
    }
    m_endingAt[at(nodes.back())].push_back(static_cast<int>(index));
  }

  /// Ops are in topological order: all predecessors of this one have been settled.
  void settle(std::size_t node) {
    m_best[node] = m_before[node];
    for (const int index : m_endingAt[node]) {
      const Gain total = totalWith(m_candidates[static_cast<std::size_t>(index)]);
      if (!exceeds(total, m_best[node], m_device)) continue;
      m_best[node] = total;
      m_choice[node] = index;
    }
    if (m_next[node] >= 0) m_before[at(m_next[node])] += m_best[node];
  }

  /// The candidate, and the best of everything that leads to its ops from elsewhere.
  Gain totalWith(const Candidate& candidate) const {
    Gain total = candidate.gain;
    for (std::size_t i = 0; i < candidate.nodes.size(); ++i) {
      total += m_before[at(candidate.nodes[i])];
      if (i > 0) total -= m_best[at(candidate.nodes[i - 1])];
    }
    return total;
  }

  std::vector<std::size_t> chosen() const {
    std::vector<bool> isTaken(m_best.size(), false);
    std::vector<std::size_t> indices;
    for (std::size_t node = m_best.size(); node-- > 0;) {
      if (isTaken[node] || m_choice[node] < 0) continue;
      indices.push_back(static_cast<std::size_t>(m_choice[node]));
      for (const NodeId id : m_candidates[indices.back()].nodes) isTaken[at(id)] = true;
    }
    std::ranges::sort(indices);
    return indices;
  }

  std::span<const Candidate> m_candidates;
  const DeviceModel& m_device;
  std::vector<NodeId> m_next;
  std::vector<Gain> m_before;  // of all predecessors of a node
  std::vector<Gain> m_best;    // including the node itself
  std::vector<int> m_choice;   // the candidate that ends at the node in the best set; -1: none
  std::vector<std::vector<int>> m_endingAt;
};

}  // namespace

std::vector<std::size_t> bestSet(std::span<const Candidate> candidates, std::size_t numNodes,
                                 const DeviceModel& device) {
  return SetChooser(candidates, numNodes, device).choose();
}

}  // namespace fuseline
