// Compares the tensors of inputs, and the problems of each node.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/incremental/reached_nodes.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace fuseline {

namespace {

void addInputs(const Graph& earlier, const Graph& later, std::set<std::string>& nodes) {
  std::map<std::string_view, const TensorSpec*> before;
  for (const ValueId id : earlier.inputs()) before.emplace(earlier.value(id).name, &earlier.value(id).spec);
  for (const ValueId id : later.inputs()) {
    const auto found = before.find(later.value(id).name);
    if (found == before.end() || *found->second != later.value(id).spec) nodes.insert(later.value(id).name);
  }
}

void addOutputs(const Graph& graph, std::set<std::string>& nodes) {
  std::vector<std::string> outputs;
  for (const GraphOutput& output : graph.outputs())
    if (nodes.contains(graph.node(graph.value(output.value).producer).owner)) outputs.push_back(output.name);
  nodes.insert(outputs.begin(), outputs.end());
}

/// Bypassed and external ops show tensors of others.
void addOpsWithoutNodes(const Graph& graph, const PipelineDocument& document, std::set<std::string>& nodes) {
  std::unordered_set<std::string_view> owners;
  owners.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) owners.insert(node.owner);
  for (const DocumentOp& op : document.ops())
    if (!owners.contains(op.id)) nodes.insert(op.id);
}

using ProblemsByNode = std::map<std::string_view, std::vector<const Diagnostic*>>;

ProblemsByNode problemsOf(const Analysis& analysis) {
  ProblemsByNode problems;
  for (const Diagnostic& problem : analysis.lowered.diagnostics) problems[problem.node].push_back(&problem);
  return problems;
}

/// Wherever the node stands in the document.
bool areSame(const std::vector<const Diagnostic*>& a, const std::vector<const Diagnostic*>& b) {
  return std::ranges::equal(a, b, [](const Diagnostic* one, const Diagnostic* other) {
    return one->severity == other->severity && one->code == other->code && one->port == other->port &&
           one->message == other->message;
  });
}

void addOtherProblems(const Analysis& analysis, const Analysis& other, std::set<std::string>& nodes) {
  const ProblemsByNode others = problemsOf(other);
  for (const auto& [node, problems] : problemsOf(analysis))
    if (const auto found = others.find(node); found == others.end() || !areSame(problems, found->second))
      nodes.emplace(node);
}

}  // namespace

std::set<std::string> reachedNodes(const Analysis& earlier, const Analysis& later, const PipelineDocument& document,
                                   std::set<std::string> ops) {
  addInputs(earlier.graph(), later.graph(), ops);
  addOutputs(later.graph(), ops);
  addOpsWithoutNodes(later.graph(), document, ops);
  addOtherProblems(earlier, later, ops);
  addOtherProblems(later, earlier, ops);
  return ops;
}

}  // namespace fuseline
