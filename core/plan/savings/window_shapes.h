// WindowShapes: parts of a graph that differ in nothing but names, so that repeated layers are planned once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline {

/// Numbers in place of a window's ops, specs and wires. Equal shapes have plans of equal cost.
using WindowShape = std::vector<int>;

class WindowShapes {
 public:
  /// switches: ops that they name are like no others.
  WindowShapes(const Graph& graph, const RuleSwitches& switches);

  /// nodes: ascending.
  WindowShape of(const std::vector<NodeId>& nodes) const;

 private:
  void addSequentials(const std::vector<NodeId>& nodes, WindowShape& shape) const;

  const Graph& m_graph;
  std::vector<int> m_ops;    // by node: equal for ops with equal attributes and quantizers
  std::vector<int> m_specs;  // by value
};

/// Numbers things in the order in which they come first.
template <class Thing>
class Numbering {
 public:
  int of(const Thing& thing) { return m_numbers.try_emplace(thing, static_cast<int>(m_numbers.size())).first->second; }

 private:
  std::map<Thing, int> m_numbers;
};

}  // namespace fuseline
