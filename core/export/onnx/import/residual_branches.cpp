// Splits tensors that sums and others read.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/residual_branches.h"

#include <fmt/format.h>

namespace fuseline {

void ResidualBranches::split() {
  m_uses = m_graph.uses();
  std::vector<ImportedOperation> branches;
  for (ImportedOperation& each : m_graph.operations)
    if (each.found.operation == "AddExtraInput") splitSum(each.found.inputs, branches);
  m_graph.operations.insert(m_graph.operations.end(), branches.begin(), branches.end());
  m_graph.sortOperations();
}

/// The main branch is the one without other consumers.
void ResidualBranches::splitSum(std::vector<std::pair<std::string, std::string>>& inputs,
                                std::vector<ImportedOperation>& branches) {
  const auto isBranch = [&](int index) {
    return m_uses[m_graph.reading.source(inputs[static_cast<std::size_t>(index)].second)] > 1;
  };
  if (isBranch(0) && !isBranch(1)) std::swap(inputs[0].second, inputs[1].second);
  const std::string tensor = m_graph.reading.source(inputs[1].second);
  if (!isBranch(1) || isBranch(0) || m_ids.contains(tensor)) return;
  const std::string id = m_graph.ids.of("residual");
  branches.push_back({.id = id,
                      .tensor = tensor,
                      .found = {.operation = "MakeExtraOutput", .inputs = {{"x", tensor}}},
                      .position = m_graph.reading.position(tensor)});
  m_ids.emplace(tensor, id);
}

std::string ResidualBranches::portOf(const std::string& tensor, const ImportedOperation* reader,
                                     std::string_view port) const {
  const std::string& source = m_graph.reading.source(tensor);
  const auto branch = m_ids.find(source);
  const bool isBranched = branch != m_ids.end() && !(reader && reader->id == branch->second);
  if (!isBranched) return m_graph.ports.at(source);
  return fmt::format("{}.{}", branch->second, port == "extra" ? "extra" : "y");
}

}  // namespace fuseline
