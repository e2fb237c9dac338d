// Messages that hold in every instance of a block, reported once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// "layer1.mlp" for an op with the path "layer1.mlp.fc1"; empty outside of instances. Ids have no dots.
std::string instanceOf(const Node& node);

/// Texts in which the instances of a block do not differ.
class InstanceNames {
 public:
  explicit InstanceNames(const Graph& graph);

  struct Text {
    std::string text;   // "Layer/fc1 stays in f32" for "layer3.fc1 stays in f32"
    std::string place;  // the first op of a block in it, "layer3.fc1"; empty: there is none
    std::string block;  // of that op
  };
  Text shared(std::string_view text) const;

 private:
  std::map<std::string, std::string, std::less<>> m_blocks;  // path of an instance to its block
};

/// Positions in a list of equal messages about instances of a block, each group in the order of the list.
using InstanceGroups = std::vector<std::vector<std::size_t>>;
/// Equal keys are one group, in the order of their first.
InstanceGroups groupsOf(const std::vector<std::string>& keys);

/// Appended to a sentence that holds in `count` instances: " The same holds in 79 more instances of block Layer.";
/// empty for one.
std::string sameInMoreInstances(std::size_t count, std::string_view block);

/// Laying out more boxes takes minutes, and a single box could not be found.
inline constexpr std::size_t kMostDrawnOps = 1000;

/// By node: the path of the instance that represents it in a picture of at most `most` boxes; empty: the node has a box
/// of its own. Instances are opened from the outside in while there is room; with fewer ops than `most` all are open.
std::vector<std::string> closedInstances(const Graph& graph, std::size_t most = kMostDrawnOps);

}  // namespace fuseline
