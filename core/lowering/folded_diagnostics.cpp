// Sentences are compared with the instances' names taken out.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/folded_diagnostics.h"

#include "core/graph/instances.h"

#include <string>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string keyOf(const InstanceNames& names, const Diagnostic& diagnostic) {
  const InstanceNames::Text message = names.shared(diagnostic.message);
  if (message.place.empty()) return {};
  std::string key = fmt::format("{}\n{}\n{}\n{}\n{}", diagnostic.code, static_cast<int>(diagnostic.severity),
                                diagnostic.port, diagnostic.pointer, message.text);
  for (const Repair& repair : diagnostic.repairs) key += "\n" + names.shared(repair.label).text;
  return key;
}

InstanceGroups instanceGroups(const Graph& graph, const std::vector<Diagnostic>& diagnostics) {
  const InstanceNames names(graph);
  std::vector<std::string> keys;
  for (const Diagnostic& diagnostic : diagnostics) {
    keys.push_back(keyOf(names, diagnostic));
    if (keys.back().empty()) keys.back() = fmt::format("{}", keys.size());  // about no op of a block: it stands alone
  }
  return groupsOf(keys);
}

}  // namespace

std::vector<Diagnostic> foldInstances(const Graph& graph, const std::vector<Diagnostic>& diagnostics) {
  const InstanceNames names(graph);
  std::vector<Diagnostic> folded;
  for (const std::vector<std::size_t>& group : instanceGroups(graph, diagnostics)) {
    folded.push_back(diagnostics[group.front()]);
    if (group.size() == 1) continue;
    for (const std::size_t i : group) folded.back().instances.push_back(names.shared(diagnostics[i].message).place);
    folded.back().message += sameInMoreInstances(group.size(), names.shared(folded.back().message).block);
  }
  return folded;
}

}  // namespace fuseline
