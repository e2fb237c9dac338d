// ResidualBranches: ops MakeExtraOutput where a residual branches off, as in te.ops, so that fusions know it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/import/found_graph.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

class ResidualBranches {
 public:
  /// The graph must outlive it.
  explicit ResidualBranches(FoundGraph& graph) : m_graph(graph) {}

  /// Adds one for every tensor that a sum and other ops read.
  void split();
  /// The port that a reader of a tensor is wired to; reader null: an output of the pipeline.
  std::string portOf(const std::string& tensor, const ImportedOperation* reader = nullptr,
                     std::string_view port = {}) const;

 private:
  void splitSum(std::vector<std::pair<std::string, std::string>>& inputs, std::vector<ImportedOperation>& branches);

  FoundGraph& m_graph;
  TensorUses m_uses;
  std::map<std::string, std::string> m_ids;  // of the MakeExtraOutput, by tensor
};

}  // namespace fuseline
