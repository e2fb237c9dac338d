// Constructors with the attributes of the ops.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/torch/torch_experts.h"

#include "core/export/te/te_operation.h"
#include "core/ops/grouped_form.h"
#include "core/ops/moe_form.h"
#include "core/ops/moe_loss_form.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string number(std::int64_t value) { return fmt::format("{}", value); }

std::vector<std::string> groupedArguments(const Node& node) {
  const GroupedForm form = groupedForm(node.attributes);
  return {number(form.numGroups),
          number(node.attributes.integer("in_features")),
          number(node.attributes.integer("out_features")),
          pythonBool(form.hasBias()),
          pythonBool(form.weights.isSingle),
          pythonBool(form.biases.isSingle),
          "device",
          torchType(node.parameters.front().dtype)};
}

/// Without those that the module has anyway.
std::vector<std::string> routerArguments(const Graph& graph, const Node& node) {
  const RouterForm form = routerForm(node.attributes);
  std::vector<std::string> arguments = {number(graph.value(node.inputs[0]).spec.cols()), number(form.topk)};
  if (form.score != RouterScore::Softmax)
    arguments.push_back("score=" + pythonText(node.attributes.text("score_function")));
  if (form.usesPreSoftmax) arguments.emplace_back("is_pre_softmax=True");
  if (form.normalizes) arguments.emplace_back("is_normalized=True");
  if (form.scalingFactor != 1.0) arguments.push_back("scaling=" + pythonNumber(form.scalingFactor));
  if (form.numGroups > 0)
    arguments.push_back(fmt::format("num_groups={}, group_topk={}", form.numGroups, form.groupTopk));
  if (form.hasExpertBias) arguments.emplace_back("has_bias=True, device=device");
  return arguments;
}

std::vector<std::string> auxLossArguments(const Node& node) {
  const AuxLossForm form = auxLossForm(node.attributes);
  std::vector<std::string> arguments = {number(form.layers), number(form.topk), pythonNumber(form.coeff),
                                        pythonNumber(form.zLossCoeff)};
  if (form.score != RouterScore::Softmax)
    arguments.push_back("score=" + pythonText(node.attributes.text("score_function")));
  return arguments;
}

}  // namespace

bool isRouting(const Node& node) {
  constexpr std::array kNames = {"TopKRouter", "MoEPermute", "MoEUnpermute", "MoEAuxLoss"};
  return std::ranges::find(kNames, node.operation->name) != kNames.end();
}

PythonCall torchExperts(const Graph& graph, const Node& node) {
  PythonCall call{.callee = node.operation->name, .arguments = {}};
  if (call.callee == "GroupedLinear") call.arguments = groupedArguments(node);
  if (call.callee == "TopKRouter") call.arguments = routerArguments(graph, node);
  if (call.callee == "MoEAuxLoss") call.arguments = auxLossArguments(node);
  if (call.callee != "MoEPermute") return call;
  const PermuteForm form = permuteForm(node.attributes);
  call.arguments = {number(form.numExperts), number(form.alignSize)};
  return call;
}

std::string routingModule(const Graph& graph, const Node& node, const std::string& className) {
  const PythonCall made = torchExperts(graph, node);
  return fmt::format("class {}({}):\n    \"\"\"{}: {}\"\"\"\n\n    def __init__(self, device):\n{}", className,
                     made.callee, docText(node.id), docText(node.operation->formula),
                     statement("", {"super().__init__", made.arguments}, "", 8));
}

}  // namespace fuseline
