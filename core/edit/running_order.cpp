// Takes ops whose sources are all taken.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/running_order.h"

#include <set>
#include <string_view>
#include <unordered_map>

namespace fuseline {

std::vector<std::size_t> runningOrder(const DocumentBlock& block) {
  std::unordered_map<std::string_view, std::size_t> indices;
  for (std::size_t i = 0; i < block.ops.size(); ++i) indices[block.ops[i].id] = i;
  std::vector<std::vector<std::size_t>> readers(block.ops.size());
  std::vector<int> numSources(block.ops.size());
  for (const Wire& wire : block.wires) {
    const auto from = indices.find(wire.from.node);
    const auto to = indices.find(wire.to.node);
    if (from == indices.end() || to == indices.end()) continue;
    readers[from->second].push_back(to->second);
    ++numSources[to->second];
  }
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < numSources.size(); ++i)
    if (numSources[i] == 0) ready.insert(i);
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const std::size_t reader : readers[next])
      if (--numSources[reader] == 0) ready.insert(reader);
  }
  return order;
}

}  // namespace fuseline
