// Source: TransformerEngine 2.20.2, quantizer.cpp and ops/fused/backward_activation_bias.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/te_requirements.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

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

}  // namespace

Verdict isTakenByTe(const Graph& graph, const Node& node, const std::optional<Recipe>& recipe) {
  const Verdict taken = canTransform(graph, node, recipe);
  return taken ? canQuantizeBehindBias(graph, node, recipe) : taken;
}

}  // namespace fuseline
