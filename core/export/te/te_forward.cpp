// Writes one line for every module, in the order of the wires.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_forward.h"

#include "core/export/te/python_text.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

class ForwardWriter {
 public:
  ForwardWriter(const Graph& graph, const std::vector<TeModule>& modules, const std::vector<ModuleBetween>& between,
                const std::vector<std::string>& betweenNames)
      : m_graph(graph),
        m_modules(modules),
        m_between(between),
        m_betweenNames(betweenNames),
        m_makers(graph, between) {}

  std::string write() {
    std::vector<std::string> arguments = {"self"};
    for (const ValueId input : outerInputs(m_graph)) arguments.push_back(variable(input));
    std::string text = statement("def ", {"forward", arguments}, ":", 4) + calls();
    std::vector<std::string> results;
    for (const GraphOutput& output : outerOutputs(m_graph)) results.push_back(variable(output.value));
    return text + fmt::format("        return {}\n", fmt::join(results, ", "));
  }

 private:
  std::string variable(ValueId value) { return m_variables.of(m_graph.value(value).name); }

  /// Each module in between as soon as all that it reads is made. They stand in the order of their wires.
  std::string calls() {
    std::string text;
    std::set<NodeId> made;
    std::vector<bool> isCalled(m_between.size());
    const auto callReady = [&] {
      for (std::size_t i = 0; i < m_between.size(); ++i) {
        if (isCalled[i] || !isReady(m_between[i], made)) continue;
        isCalled[i] = true;
        text += betweenText(i);
      }
    };
    callReady();
    for (const TeModule& module : m_modules) {
      text += callText(module);
      made.insert(module.sequence.nodes.begin(), module.sequence.nodes.end());
      callReady();
    }
    return text;
  }

  bool isReady(const ModuleBetween& module, const std::set<NodeId>& made) const {
    return std::ranges::all_of(module.inputs, [&](ValueId input) {
      return std::ranges::all_of(m_makers.of(input), [&](NodeId maker) { return made.contains(maker); });
    });
  }

  std::string betweenText(std::size_t index) {
    std::vector<std::string> results, arguments;
    for (const ValueId value : m_between[index].outputs) results.push_back(variable(value));
    for (const ValueId value : m_between[index].inputs) arguments.push_back(variable(value));
    return statement(fmt::format("{} = ", fmt::join(results, ", ")), {"self." + m_betweenNames[index], arguments}, "",
                     8);
  }

  std::string callText(const TeModule& module) {
    const TeSequence& sequence = module.sequence;
    std::vector<std::string> results = {variable(sequence.output)}, arguments = {variable(sequence.input)};
    for (const ValueId value : sequence.extraOutputs) results.push_back(variable(value));
    for (const ValueId value : sequence.extraInputs) arguments.push_back(variable(value));
    return statement(fmt::format("{} = ", fmt::join(results, ", ")), {"self." + module.name, arguments}, "", 8);
  }

  const Graph& m_graph;
  const std::vector<TeModule>& m_modules;
  const std::vector<ModuleBetween>& m_between;
  const std::vector<std::string>& m_betweenNames;
  Makers m_makers;
  PythonNames m_variables{{"self", "te", "torch", "recipe"}};
};

}  // namespace

std::string teForward(const Graph& graph, const std::vector<TeModule>& modules,
                      const std::vector<ModuleBetween>& between, const std::vector<std::string>& betweenNames) {
  return ForwardWriter(graph, modules, between, betweenNames).write();
}

}  // namespace fuseline
