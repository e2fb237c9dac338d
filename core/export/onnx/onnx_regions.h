// Which nodes of an ONNX graph are one thing, where they are no ops of Fuseline: attention is a dozen of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

namespace fuseline {

/// An op that was found in a graph, or a node that is none: the tensors that it reads and makes.
struct GraphPart {
  bool isOperation = false;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

struct Region {
  std::vector<std::size_t> parts;   // numbers of parts that are no ops
  std::vector<std::string> inputs;  // tensors of ops, of other regions, and `given` ones, in the order of their readers
  std::vector<std::string> outputs;  // tensors that ops or other regions read, in the order in which they are made
};

/// Nodes that hang together and are no ops, where something is computed in them of what ops make, or of tensors that
/// are `given`, and ops read of it in turn. Nothing that a region makes comes back into it by way of ops. Each is
/// behind those that it reads of. `parts` stand in an order in which they can run.
std::vector<Region> regionsOf(const std::vector<GraphPart>& parts, const std::set<std::string>& given);

}  // namespace fuseline
