// Checks ops against the requirements of TransformerEngine 2.20.2: ops/basic/grouped_linear.py,
// ops/fused/grouped_mlp.py, ops/basic/basic_linear.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_refusals.h"

#include "core/ops/tensor_parallel.h"
#include "core/quant/te_requirements.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// The features that a parallel layer divides; rows need not divide, because each rank brings its own.
Verdict isDividedEqually(const Node& node, std::int64_t ranks) {
  if (node.operation->name != "BasicLinear") return Verdict::yes();
  const TensorParallelism parallel = tensorParallelism(node.attributes, ranks);
  if (parallel.mode == TensorParallelism::Mode::None) return Verdict::yes();
  const char* const divided = parallel.mode == TensorParallelism::Mode::Column ? "out_features" : "in_features";
  const Result<std::int64_t> share = shareOf(node.path, divided, node.attributes.integer(divided), ranks);
  return share ? Verdict::yes() : Verdict::no(share.error().message);
}

std::optional<TeEnvironment> singleParameters(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (const char* const attribute = singleParameterOf(node); attribute && !isWrittenApart(node))
      return TeEnvironment{"NVTE_GROUPED_LINEAR_SINGLE_PARAM",
                           fmt::format("{}: TransformerEngine ignores {} by default", node.id, attribute)};
  return std::nullopt;
}

std::optional<TeEnvironment> groupedMlp(const FusionReport& report) {
  for (const FusedOperation& entry : report.forward)
    if (entry.isFused() && entry.rule->name.starts_with("GroupedMLP_"))
      return TeEnvironment{"NVTE_CUTEDSL_FUSED_GROUPED_MLP",
                           fmt::format("TransformerEngine does not fuse {} by default", entry.rule->name)};
  return std::nullopt;
}

}  // namespace

Result<void> refuseForTe(const Graph& graph, const std::optional<Recipe>& recipe, std::int64_t ranks) {
  for (const Node& node : graph.nodes())
    for (const Verdict& verdict : {isTakenByTe(graph, node, recipe), isDividedEqually(node, ranks)})
      if (!verdict) return Error{verdict.reason()};
  return {};
}

std::vector<TeEnvironment> teEnvironment(const Graph& graph, const FusionReport& report) {
  std::vector<TeEnvironment> found;
  for (std::optional<TeEnvironment> variable : {singleParameters(graph), groupedMlp(report)})
    if (variable) found.push_back(std::move(*variable));
  return found;
}

}  // namespace fuseline
