// A graph keeps only the names of such ops' tensors; the other fields are in the document.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/modules_between.h"

#include "core/lowering/document_operation.h"
#include "core/lowering/symbol_table.h"
#include "core/ops/external.h"

#include <algorithm>

namespace fuseline {

namespace {

/// The op at "layer1.attention", inside the instance layer1; nullptr if there is none.
const DocumentOp* opAt(const PipelineDocument& document, std::string_view path) {
  const DocumentBlock* block = &document.pipeline();
  const DocumentOp* op = nullptr;
  while (!path.empty() && block) {
    const std::string_view id = path.substr(0, path.find('.'));
    const auto found = std::ranges::find(block->ops, id, &DocumentOp::id);
    if (found == block->ops.end()) return nullptr;
    op = &*found;
    block = document.findBlock(blockNameOf(*op));
    path.remove_prefix(std::min(path.size(), id.size() + 1));
  }
  return op;
}

std::vector<ValueId> valuesOf(const Graph& graph, const std::string& path, const std::vector<Port>& ports) {
  std::vector<ValueId> values;
  for (const Port& port : ports) values.push_back(graph.findValue(path + "." + port.name));
  return values;
}

/// Empty: it is not given.
std::string textOf(const DocumentOp& op, const char* attribute) {
  const auto found = op.attributes.find(attribute);
  return found != op.attributes.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Lowering adds their outputs op by op, so that each op begins with its first.
std::vector<std::string> pathsOf(const Graph& graph) {
  std::vector<std::string> paths;
  for (const ValueId input : graph.inputs()) {
    const std::string& name = graph.value(input).name;
    if (!isOfExternal(name)) continue;
    if (paths.empty() || paths.back() != externalOf(name)) paths.emplace_back(externalOf(name));
  }
  return paths;
}

}  // namespace

std::vector<ModuleBetween> modulesBetween(const PipelineDocument& document, const Graph& graph) {
  DiagnosticSink ignored(nullptr);  // the graph could not be lowered otherwise
  const SymbolTable symbols(document, {}, ignored);
  std::vector<ModuleBetween> modules;
  for (const std::string& path : pathsOf(graph)) {
    const DocumentOp* op = opAt(document, path);
    if (!op) continue;
    const OperationPointer type = operationOf(document, *op);
    modules.push_back({.path = path,
                       .call = symbols.withExpressions(textOf(*op, "module")),
                       .description = textOf(*op, "description"),
                       .nodes = textOf(*op, "nodes"),
                       .inputs = valuesOf(graph, path, type->inputs),
                       .outputs = valuesOf(graph, path, type->outputs)});
  }
  return modules;
}

}  // namespace fuseline
