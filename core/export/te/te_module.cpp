// Looks through modules and their graph.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_module.h"

#include "core/ops/external.h"

#include <algorithm>

namespace fuseline {

bool isParallel(const std::vector<TeModule>& modules) {
  return std::ranges::any_of(modules, [](const TeModule& module) {
    return std::ranges::any_of(module.operations, [](const TeOperation& operation) {
      const auto& [callee, arguments] = operation.call;
      const bool isCollective =
          callee.ends_with("AllGather") || callee.ends_with("AllReduce") || callee.ends_with("ReduceScatter");
      return isCollective || std::ranges::any_of(arguments, [](const std::string& argument) {
               return argument.starts_with("tensor_parallel");
             });
    });
  });
}

std::vector<ValueId> outerInputs(const Graph& graph) {
  std::vector<ValueId> inputs = graph.inputs();
  std::erase_if(inputs, [&](ValueId input) { return isOfExternal(graph.value(input).name); });
  return inputs;
}

std::vector<GraphOutput> outerOutputs(const Graph& graph) {
  std::vector<GraphOutput> outputs = graph.outputs();
  std::erase_if(outputs, [](const GraphOutput& output) { return isOfExternal(output.name); });
  return outputs;
}

}  // namespace fuseline
