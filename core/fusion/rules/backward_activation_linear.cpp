// An activation's gradient in the GEMM that computes the gradient of its output.
//
// The gradient of a bias downstream of the linear is included, as in BackwardLinearBias. The gradient of a bias
// upstream of the activation is not: if a linear produces the bias's input, BackwardLinearBias sums it there, with the
// same saving.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"
#include "core/fusion/step_operands.h"
#include "core/quant/apply_recipe.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

/// Under sequence parallelism a row-parallel linear multiplies the gathered gradient of all ranks.
Condition readsTheRowsOfItsBias() {
  return {.sentence = "The bias and the linear read the same output gradient.",
          .holds =
              [](const Match& match) {
                const Node& linear = *match.role("linear");
                const Node* const bias = match.role("bias");
                const bool isGathered = linear.attributes.text("tensor_parallel_mode") == "row" &&
                                        linear.attributes.boolean("sequence_parallel");
                if (!bias || !isGathered) return Verdict::yes();
                return Verdict::no(
                    fmt::format("{} is row-parallel with sequence_parallel: its GEMMs read the gradient gathered "
                                "from all ranks, but {} sums only the local one.",
                                linear.id, bias->id));
              },
          .repairs =
              [](const Match& match) {
                return std::vector{setAttribute(*match.role("linear"), "sequence_parallel", false)};
              }};
}

/// Is the gradient of the op's input the one of its output?
bool handsGradientOn(const Graph& graph, NodeId id) {
  const std::vector<ViewOperand> views = backwardOperands(graph, {.nodes = {id}}).views;
  return std::ranges::any_of(views, [](const ViewOperand& view) {
    return view.view.kind == OperandKind::GradInput && view.view.slot == 0 &&
           view.source.kind == OperandKind::GradOutput;
  });
}

/// The op that quantizes the gradient of the value; nullptr: none does, or only after other parts are added.
const Node* gradientQuantizer(const Graph& graph, const Value& value) {
  if (value.producer < 0 || value.isOutput || value.uses.size() > 1) return nullptr;
  const Node& node = graph.node(value.producer);
  if (!node.takesPartInBackward()) return nullptr;
  if (quantizersOf(node, TensorType::GradOutput).any()) return &node;
  return handsGradientOn(graph, value.producer) ? gradientQuantizer(graph, graph.value(node.inputs.front())) : nullptr;
}

Condition isNotQuantized() {
  return {.sentence = "The activation's input gradient is not quantized.", .holds = [](const Match& match) {
            const Node& act = *match.role("act");
            const Node* const reader = gradientQuantizer(match.graph, match.graph.value(act.inputs.front()));
            if (!reader) return Verdict::yes();
            return Verdict::no(
                fmt::format("{} ({}) quantizes the gradient that {} produces. Without this fusion, {} can write it "
                            "quantized (BackwardQuantize) and sum a bias (BackwardActivationBias).",
                            reader->id, reader->operation->name, act.id, act.id));
          }};
}

}  // namespace

FusionRule backward_activation_linear() {
  return {
      .name = "BackwardActivationLinear",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "The GEMM that computes the gradient of the activation's output multiplies it by the activation's "
          "derivative, so that gradient is never written.",
      .chain = {{.role = "act", .operations = {"GELU", "ReLU"}},
                {.role = "linear", .operations = {"BasicLinear"}},
                {.role = "bias", .operations = {"Bias"}, .repeat = Repeat::Optional}},
      .conditions = {linearModeIsNot("linear", "column"), readsTheRowsOfItsBias(), keepsItsInput("act"),
                     isNotQuantized()},
      .becomes = "linear_backward_activation",
  };
}

}  // namespace fuseline::rules
