// Writes the modules of External ops by their attributes and nodes.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/between_modules.h"

#include "core/export/te/python_expression.h"
#include "core/export/te/python_text.h"
#include "core/export/te/torch_nodes.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kPlaceholder =
    R"(class Placeholder(torch.nn.Module):
    """An op that Fuseline has the shapes of, but cannot write in Python."""

    def __init__(self, name, description):
        super().__init__()
        self.name = name
        self.description = description

    def forward(self, *inputs):
        shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
        raise NotImplementedError(f"{self.name} ({self.description}) of {shapes}: put a module in its place.")


)";

Error withoutExpression(const ModuleBetween& module) {
  return Error{
      fmt::format("{} (External): its module is \"{:.60}\"; expected one Python expression on one line, such as "
                  "te.DotProductAttention(32, 128).",
                  module.path, docText(module.call))};
}

}  // namespace

Result<void> BetweenModules::prepare() {
  for (const ModuleBetween& module : m_modules) {
    if (module.call.empty()) {
      fillIn(module);
      continue;
    }
    if (!isPythonExpression(module.call)) return withoutExpression(module);
    noteModule(module);
  }
  return {};
}

/// Instances of a block have one class.
void BetweenModules::fillIn(const ModuleBetween& module) {
  if (module.nodes.empty() || m_classes.contains(module.nodes)) return notePlaceholder(module);
  const std::string name = fmt::format("Nodes{}", m_classes.size() + 1);
  const auto text = torchNodes(module.nodes, name, module.inputs.size(), module.outputs.size());
  if (text) m_classes.emplace(module.nodes, std::pair(name, *text));
  notePlaceholder(module);
}

void BetweenModules::notePlaceholder(const ModuleBetween& module) {
  const char* const what =
      module.description.empty() ? "an op that Fuseline does not have" : module.description.c_str();
  if (m_classes.contains(module.nodes))
    m_notes.push_back(fmt::format(
        "{}: PyTorch code between the te.ops.Sequential modules, with the sizes of the ONNX model, computes {}.",
        module.path, what));
  else
    m_notes.push_back(
        fmt::format("{0}: its Placeholder raises NotImplementedError in forward. Replace it, or set the attribute "
                    "module of {0}, such as te.DotProductAttention(32, 128). It stands for: {1}.",
                    module.path, what));
}

std::string BetweenModules::classes() const {
  std::string text = hasPlaceholders() ? kPlaceholder : "";
  for (const auto& [nodes, named] : m_classes) text += named.second + "\n\n";
  return text;
}

bool BetweenModules::hasPlaceholders() const {
  return std::ranges::any_of(m_modules, [this](const ModuleBetween& module) {
    return module.call.empty() && !m_classes.contains(module.nodes);
  });
}

std::string BetweenModules::callOf(const ModuleBetween& module) const {
  if (!module.call.empty()) return module.call;
  if (const auto known = m_classes.find(module.nodes); known != m_classes.end()) return known->second.first + "()";
  return fmt::format("Placeholder({}, {})", pythonText(module.path), pythonText(module.description));
}

void BetweenModules::noteModule(const ModuleBetween& module) {
  m_notes.push_back(
      fmt::format("{}: its module runs between two te.ops.Sequential modules. Fuseline does not run it, so times, "
                  "outputs and gradients differ from `fuseline run`. Module: {}.",
                  module.path, module.call));
}

}  // namespace fuseline
