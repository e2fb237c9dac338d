// Topological order: the first node whose inputs are known runs next.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_node_order.h"

#include "core/export/onnx/onnx_reading.h"

#include <functional>
#include <map>
#include <queue>
#include <string>
#include <vector>

namespace fuseline {

namespace {

/// The nodes that run before and after a node.
struct NodeLinks {
  std::vector<int> readers = {};  // once for each input
  int numWaitedFor = 0;
};

std::vector<NodeLinks> linksOf(const ::onnx::GraphProto& graph) {
  std::map<std::string, int, std::less<>> makers;
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string& output : graph.node(i).output())
      if (!output.empty()) makers.emplace(output, i);
  std::vector<NodeLinks> links(static_cast<std::size_t>(graph.node_size()));
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string& input : readBy(graph.node(i)))
      if (const auto maker = makers.find(input); maker != makers.end()) {
        links[static_cast<std::size_t>(maker->second)].readers.push_back(i);
        ++links[static_cast<std::size_t>(i)].numWaitedFor;
      }
  return links;
}

}  // namespace

void sortNodes(::onnx::GraphProto& graph) {
  std::vector<NodeLinks> links = linksOf(graph);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < graph.node_size(); ++i)
    if (links[static_cast<std::size_t>(i)].numWaitedFor == 0) ready.push(i);
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> sorted;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    sorted.Add()->Swap(graph.mutable_node(next));
    for (const int reader : links[static_cast<std::size_t>(next)].readers)
      if (--links[static_cast<std::size_t>(reader)].numWaitedFor == 0) ready.push(reader);
  }
  for (int i = 0; i < graph.node_size(); ++i)
    if (links[static_cast<std::size_t>(i)].numWaitedFor > 0) sorted.Add()->Swap(graph.mutable_node(i));
  graph.mutable_node()->Swap(&sorted);
}

}  // namespace fuseline
