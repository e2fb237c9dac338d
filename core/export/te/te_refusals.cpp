// Checks ops against the requirements of TransformerEngine 2.20.2: ops/basic/grouped_linear.py,
// ops/fused/grouped_mlp.py, quantizer.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_refusals.h"

#include "core/export/te/te_grouped.h"
#include "core/export/te/te_operation.h"
#include "core/ops/parameters.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// All parameters of a GroupedLinear are frozen, or none is.
Verdict isFrozenAlike(const Node& node) {
  if (node.operation->name != "GroupedLinear" || node.parameters.size() < 2) return Verdict::yes();
  const auto isTrainedAt = [&](int slot) { return isTrained(*node.operation, node.attributes, slot); };
  for (int slot = 1; slot < static_cast<int>(node.parameters.size()); ++slot)
    if (isTrainedAt(slot) != isTrainedAt(0))
      return Verdict::no(
          fmt::format("{}: weight_requires_grad is {}, but bias_requires_grad is {}. te.ops.GroupedLinear trains both "
                      "or neither. Set both to the same value.",
                      node.id, isTrainedAt(0), isTrainedAt(slot)));
  return Verdict::yes();
}

/// Under NVFP4, TransformerEngine's quantizers raise for dtypes that they cannot transform, even if no GEMM reads the
/// transformed values.
bool isTransformed(const TensorQuantizers& quantizers, const std::optional<Recipe>& recipe) {
  if (quantizers.columnwise && quantizers.columnwise->transformsColumnwise) return true;
  return quantizers.any() && recipe && recipe->name() == "NVFP4BlockScaling" &&
         !recipe->fields().boolean("disable_rht");
}

/// The random Hadamard transform of NVFP4 has a kernel for bf16 alone.
Verdict canTransform(const Graph& graph, const Node& node, const std::optional<Recipe>& recipe) {
  const auto refusal = [&](const char* what, ValueId value) {
    return Verdict::no(
        fmt::format("{}: TransformerEngine's random Hadamard transform needs bf16, but its {} is {}. Use bf16 tensors, "
                    "or disable the transform: --recipe-set disable_rht=true.",
                    node.id, what, dtypeName(graph.value(value).spec.dtype)));
  };
  const auto isBf16 = [&](ValueId value) { return graph.value(value).spec.dtype == DType::BF16; };
  if (isTransformed(node.quantizers.input, recipe) && !isBf16(node.inputs[0])) return refusal("input", node.inputs[0]);
  if (isTransformed(node.quantizers.gradOutput, recipe) && !isBf16(node.outputs[0]))
    return refusal("output gradient", node.outputs[0]);
  return Verdict::yes();
}

/// Its kernel of a bias's gradient quantizes for the linear op before, by a quantizer of one scaling.
Verdict canQuantizeBehindBias(const Graph& graph, const Node& node, const std::optional<Recipe>& recipe) {
  const NodeId before = node.operation->name == "Bias" ? graph.value(node.inputs[0]).producer : -1;
  if (before < 0 || graph.pass() != ExecutionMode::Training || !graph.node(before).quantizers.hasEverySlot)
    return Verdict::yes();
  const TensorQuantizers& quantizers = graph.node(before).quantizers.gradOutput;
  const bool isAsked = recipe && recipe->fields().text("backward_override") == "none";
  const bool isTaken = !isAsked || (quantizers.any() && quantizers.rowwise == quantizers.columnwise);
  if (isTaken || !graph.node(before).operation->isQuantizable) return Verdict::yes();
  return Verdict::no(
      fmt::format("{}: te.ops.Bias raises unless the rowwise and columnwise gradient that {} consumes have one "
                  "quantizer. Use one quantizer, set backward_override, or remove the bias.",
                  node.id, graph.node(before).id));
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

Result<void> refuseForTe(const Graph& graph, const std::optional<Recipe>& recipe) {
  for (const Node& node : graph.nodes())
    for (const Verdict& verdict : {isFrozenAlike(node), takesSingleParameter(node, recipe),
                                   canTransform(graph, node, recipe), canQuantizeBehindBias(graph, node, recipe)})
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
