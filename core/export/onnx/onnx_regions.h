// Groups of ONNX nodes that belong together and are no ops of Fuseline: attention is a dozen of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

namespace fuseline {

/// An op that was found in a graph, or another node: its input and output tensors.
struct GraphPart {
  bool isOperation = false;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

struct Region {
  std::vector<std::size_t> parts;   // indices of parts that are no ops
  std::vector<std::string> inputs;  // tensors of ops, of other regions, and `given` ones, in the order of their readers
  std::vector<std::string> outputs;  // tensors that ops or other regions read, in the order in which they are computed
};

/// Connected nodes that are no ops, if they compute with outputs of ops or `given` tensors, and ops read their results.
/// No output of a region returns to it through ops. Each region follows those that it reads from. `parts` are in an
/// executable order.
std::vector<Region> regionsOf(const std::vector<GraphPart>& parts, const std::set<std::string>& given);

}  // namespace fuseline
