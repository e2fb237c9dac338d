// Source: TransformerEngine 2.20.2, quantizer.cpp, ops/fused/backward_activation_bias.py, ops/basic/grouped_linear.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/te_requirements.h"

#include "core/ops/parameters.h"

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

/// A single parameter for all groups needs TransformerEngine's native grouped GEMM.
Verdict takesSingleParameter(const Node& node, const std::optional<Recipe>& recipe) {
  const char* const attribute = singleParameterOf(node);
  if (!attribute || isWrittenApart(node)) return Verdict::yes();
  const bool isQuantized = recipe && (node.quantizers.any() || recipe->name() == "CustomRecipe");
  if (!isQuantized || hasGroupedKernels(*recipe)) return Verdict::yes();
  return Verdict::no(
      fmt::format("{}: te.ops.GroupedLinear does not support {} under {}{}. Set {} to false, or choose another recipe.",
                  node.id, attribute, recipe->name(),
                  recipe->name() == "NVFP4BlockScaling" ? " without its transform or with row scales" : "", attribute));
}

}  // namespace

const char* singleParameterOf(const Node& node) {
  for (const char* attribute : {"single_grouped_weight", "single_grouped_bias"})
    if (node.attributes.has(attribute) && node.attributes.boolean(attribute)) return attribute;
  return nullptr;
}

/// TransformerEngine 2.20.2, is_op_fuser_grouped_tensor_path_supported().
bool isWrittenApart(const Node& node) {
  return node.operation->name == "GroupedLinear" && node.parameters.front().dtype == DType::F32 &&
         singleParameterOf(node);
}

/// NVFP4's grouped kernels always transform, and scale whole tensors.
bool hasGroupedKernels(const Recipe& recipe) {
  if (recipe.definition().isCustom || recipe.definition().hasState) return false;
  if (recipe.name() != "NVFP4BlockScaling") return true;
  return !recipe.fields().boolean("disable_rht") && !recipe.fields().boolean("row_scaled_activation");
}

Verdict isTakenByTe(const Graph& graph, const Node& node, const std::optional<Recipe>& recipe) {
  for (const Verdict& verdict : {isFrozenAlike(node), takesSingleParameter(node, recipe),
                                 canTransform(graph, node, recipe), canQuantizeBehindBias(graph, node, recipe)})
    if (!verdict) return verdict;
  return Verdict::yes();
}

}  // namespace fuseline
