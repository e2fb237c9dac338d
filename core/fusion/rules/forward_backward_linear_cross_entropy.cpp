// The head of a model and its loss: the logits are computed some rows at a time, and again in backward.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

bool isTied(const Node& linear) { return linear.operation->name == "TiedLinear"; }

/// A scale for the whole tensor would need all logits, or all rows of x, first.
Condition staysInHighPrecision() {
  return {.sentence = "The recipe leaves the linear in high precision.",
          .holds =
              [](const Match& match) {
                const Node& linear = *match.role("linear");
                for (const TensorType type : {TensorType::Input, TensorType::Weight, TensorType::GradOutput})
                  if (quantizersOf(linear, type).any())
                    return Verdict::no(
                        fmt::format("{} multiplies quantized tensors, which this kernel does not support. Leave the "
                                    "head in high precision.",
                                    linear.id));
                return Verdict::yes();
              },
          .repairs = {}};
}

Condition isOnOneRank() {
  return {.sentence = "The linear is not split over ranks.",
          .holds =
              [](const Match& match) {
                const Node& linear = *match.role("linear");
                if (isTied(linear) || linear.attributes.text("tensor_parallel_mode") == "none") return Verdict::yes();
                return Verdict::no(fmt::format("{} is split over ranks ({}), so no rank has all logits of a row.",
                                               linear.id, linear.attributes.text("tensor_parallel_mode")));
              },
          .repairs = {}};
}

Condition hasOneDType() {
  return {.sentence = "The input and the weight of the linear have one dtype.",
          .holds =
              [](const Match& match) {
                const Node& linear = *match.role("linear");
                const DType x = match.graph.value(linear.inputs[0]).spec.dtype;
                const DType y = match.graph.value(linear.outputs[0]).spec.dtype;
                if (x == y) return Verdict::yes();
                return Verdict::no(fmt::format("{} has x in {} but its weight in {}. Give both the same dtype.",
                                               linear.id, dtypeName(x), dtypeName(y)));
              },
          .repairs = {}};
}

/// x and the weight for the logits, the targets, and the log-sum-exp of each row.
std::vector<MemberTensor> saves(const Match& match) {
  const SavedTensor weight =
      isTied(match.node(0)) ? SavedTensor{OperandKind::Input, 1} : SavedTensor{OperandKind::Parameter, 0};
  return {{0, {OperandKind::Input, 0}}, {0, weight}, {1, {OperandKind::Input, 1}}, {1, {OperandKind::Residual, 0}}};
}

}  // namespace

FusionRule forward_backward_linear_cross_entropy() {
  return {
      .name = "ForwardBackwardLinearCrossEntropy",
      .pass = FusionPass::Joint,
      .origin = RuleOrigin::Fuseline,
      .summary = "The logits and their gradient are never stored: both passes compute some rows of them at a time.",
      .chain = {{.role = "linear", .operations = {"BasicLinear", "TiedLinear"}},
                {.role = "loss", .operations = {"CrossEntropy"}}},
      .conditions = {isOnOneRank(), hasOneDType(), staysInHighPrecision()},
      .becomes = "linear_cross_entropy",
      .saves = saves,
      .price = "Backward recomputes the logits, which takes one more GEMM.",
  };
}

}  // namespace fuseline::rules
