// Finds the op that gives a step its color.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/step_category.h"

namespace fuseline::ui {

namespace {

/// Category of an op, if the graph has it.
std::string categoryOfOp(const Graph* graph, const std::string& op) {
  const NodeId node = graph ? graph->findNode(op) : NodeId{-1};
  return node < 0 ? std::string() : graph->node(node).operation->category;
}

}  // namespace

/// Kernels of fusions are named after their main work; an elementwise one may be an activation.
std::string categoryOf(const StepRecord& step, const Graph* graph) {
  if (!step.collective.empty()) return "Communication";
  if (step.ops.size() == 1)
    if (const std::string category = categoryOfOp(graph, step.ops.front()); !category.empty()) return category;
  if (step.kernel == "elementwise")
    for (const std::string& op : step.ops)
      if (const std::string category = categoryOfOp(graph, op); category == "Activation") return category;
  return step.kernel == "grouped_mlp" ? "Linear" : step.kernel;
}

}  // namespace fuseline::ui
