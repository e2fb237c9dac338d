// WindowShapes: parts of a graph that differ in nothing but names, so that repeated layers are planned once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace fuseline {

/// Numbers in place of a window's ops, specs and wires. Equal shapes have plans of equal cost.
using WindowShape = std::vector<int>;

/// Numbers things in the order in which they come first.
template <class Thing>
class Numbering {
 public:
  int of(const Thing& thing) { return m_numbers.try_emplace(thing, static_cast<int>(m_numbers.size())).first->second; }

 private:
  std::map<Thing, int> m_numbers;
};

/// The numbers in shapes. Shapes of several graphs can be compared if these share their numbers.
struct ShapeNumbers {
  Numbering<std::string> ops;
  Numbering<std::string> specs;
  std::vector<LinearQuantizers> quantizers;
};

class WindowShapes {
 public:
  /// switches: ops that they name are like no others.
  WindowShapes(const Graph& graph, const RuleSwitches& switches, ShapeNumbers& numbers);

  /// nodes: ascending.
  WindowShape of(const std::vector<NodeId>& nodes) const;

 private:
  void addSequentials(const std::vector<NodeId>& nodes, WindowShape& shape) const;

  const Graph& m_graph;
  std::vector<int> m_ops;    // by node: equal for ops with equal attributes and quantizers
  std::vector<int> m_specs;  // by value
};

struct ShapeHash {
  std::size_t operator()(const WindowShape& shape) const;
};

/// Savings of fusions by the shape of their window, for graphs that are fused with the same options, measured gains
/// aside: after an edit most shapes are known.
struct KnownSavings {
  ShapeNumbers numbers;
  Numbering<const FusionRule*> rules;
  Numbering<std::string> edits;
  std::unordered_map<WindowShape, std::optional<Saving>, ShapeHash> savings;
};

}  // namespace fuseline
