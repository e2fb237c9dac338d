// The window around an edit is lowered and fused like a pipeline of its own.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/incremental/neighborhood.h"

#include "core/edit/document_window.h"
#include "core/edit/links.h"
#include "core/graph/graph_window.h"
#include "core/plan/analysis_stages.h"
#include "core/plan/savings/planned_savings.h"
#include "core/plan/savings/window_shapes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

/// More than any rule looks beyond the ops of its chain.
constexpr int kHopsAround = 4;
/// More take too long to be shown at once.
constexpr std::size_t kMostAround = 400;

void addOwners(const Graph& graph, const std::vector<NodeId>& nodes, std::set<std::string>& owners) {
  for (const NodeId id : nodes) owners.insert(graph.node(id).owner);
}

/// With all ops of the chains that were tried there, which may be long.
std::vector<NodeId> withChains(const Analysis& analysis, std::vector<NodeId> nodes) {
  if (nodes.empty()) return nodes;
  std::vector<bool> isNear(analysis.graph().nodes().size(), false);
  for (const NodeId id : nodes) isNear[static_cast<std::size_t>(id)] = true;
  const auto [first, last] = std::ranges::minmax(nodes);  // most of a large graph is outside
  const auto isAmongNodes = [&, first = first, last = last](NodeId id) {
    return id >= first && id <= last && isNear[static_cast<std::size_t>(id)];
  };
  for (const Attempt& attempt : analysis.report.attempts)
    if (std::ranges::any_of(attempt.nodes, isAmongNodes))
      nodes.insert(nodes.end(), attempt.nodes.begin(), attempt.nodes.end());
  return nodesAround(analysis.graph(), nodes, 0);
}

/// Those that the edits name, and the ops whose results the named outputs were.
std::vector<NodeId> changedNodes(const Graph& graph, const EditExtent& edits) {
  std::vector<NodeId> changed;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id)
    if (edits.nodes.contains(graph.node(id).owner)) changed.push_back(id);
  for (const GraphOutput& output : graph.outputs())
    if (const NodeId producer = graph.value(output.value).producer; producer >= 0 && edits.nodes.contains(output.name))
      changed.push_back(producer);
  return changed;
}

bool isSameTensor(const Value* before, const Value* after) {
  return before && after && before->spec == after->spec && before->needsGradient == after->needsGradient;
}

/// Do ops outside of the window read the tensors that they read before?
bool keepsOutside(const Neighborhood& part, const Graph& earlier) {
  return std::ranges::all_of(part.document.outputs(), [&](const DocumentOutput& output) {
    const Value* const before = valueAt(earlier, output.from);
    return !before || isSameTensor(before, valueAt(part.window.graph(), output.from));
  });
}

}  // namespace

std::optional<EditedWindow> windowAround(const EditExtent& edits, const PipelineDocument& document,
                                         const Analysis& earlier) {
  const bool isLocal = !edits.changesOtherNodes && !edits.changesSwitches && !edits.nodes.empty();
  if (!isLocal || !earlier.isRunnable() || earlier.ranks > 1) return std::nullopt;
  const Graph& graph = earlier.graph();
  // An input may be another one now, under the same id.
  const auto isNamed = [&](ValueId input) { return edits.nodes.contains(graph.value(input).name); };
  if (std::ranges::any_of(graph.inputs(), isNamed)) return std::nullopt;
  const std::vector<NodeId> changed = changedNodes(graph, edits);
  if (changed.empty() || changed.size() > kMostAround) return std::nullopt;
  const std::vector<NodeId> known = withChains(earlier, nodesAround(graph, changed, kHopsAround));
  if (known.size() > kMostAround) return std::nullopt;
  const std::vector<NodeId> around =
      nodesAround(graph, withChains(earlier, nodesAround(graph, known, kHopsAround)), kHopsAround);
  if (around.size() > kMostAround) return std::nullopt;
  std::set<std::string> ops = edits.nodes;
  addOwners(graph, around, ops);
  std::optional<PipelineDocument> window = windowOf(document, graph, ops);
  if (!window) return std::nullopt;
  ops = edits.nodes;
  addOwners(graph, known, ops);
  std::erase_if(ops, [&](const std::string& id) { return !window->findOp(id); });
  return EditedWindow{std::move(ops), std::move(*window)};
}

std::optional<Neighborhood> neighborhoodOf(EditedWindow window, const Analysis& earlier, const AnalysisOptions& options,
                                           KnownSavings& known) {
  Neighborhood part{.document = std::move(window.document), .window = {}, .ops = std::move(window.ops)};
  part.window = graphStage(part.document, options);
  if (hasErrors(part.window.lowered.diagnostics) || !keepsOutside(part, earlier.graph())) return std::nullopt;
  const FusionOptions fusion = fusionOptions(part.document, options, part.window);
  Result<FusionReport> report = fuseByPlans(part.window.graph(), fusion, planOptions(options), &known);
  if (!report) return std::nullopt;
  part.window.report = std::move(*report);
  return part;
}

}  // namespace fuseline
