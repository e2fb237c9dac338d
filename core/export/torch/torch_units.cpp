// Consecutive ops of one instance become a module; instances whose modules have the same text share their class.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/torch/torch_units.h"

#include "core/export/te/python_text.h"
#include "core/export/te/te_module.h"
#include "core/export/torch/torch_member.h"
#include "core/ops/parameters.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// Names that the script has without classes of the pipeline.
std::set<std::string, std::less<>> scriptNames() {
  return {"Pipeline",
          "DotProductAttention",
          "GroupedLinear",
          "MoEAuxLoss",
          "MoEPermute",
          "MoEUnpermute",
          "TopKRouter",
          "L2Normalization",
          "LayerNorm",
          "RMSNorm",
          "argparse",
          "RotaryPositionEmbedding",
          "compare_tensors",
          "decoded_mxfp4",
          "draw",
          "gradient_of",
          "parameters_at",
          "set_parameter",
          "stored_name",
          "stored_tensor",
          "weights_of_experts",
          "forward",
          "HAS_OPTIMIZER",
          "Optimizer",
          "ADAMW",
          "MAX_GRAD_NORM",
          "SCHEDULE",
          "TRAINING_STEPS",
          "UPDATE_TOLERANCE",
          "WARMUP_STEPS",
          "compare_training",
          "learning_rate_factor",
          "math",
          "parameter_of",
          "update_error",
          "joined_weights",
          "layer_of",
          "load_weights",
          "main",
          "measure",
          "relative_error",
          "statistics",
          "step",
          "sys",
          "time",
          "torch",
          "INPUTS",
          "OUTPUTS",
          "PARAMETERS",
          "TOLERANCE",
          "TRAINS",
          "WEIGHTS"};
}

/// Classes by text: the same text has one name.
class ClassTable {
 public:
  explicit ClassTable(std::string& definitions) : m_definitions(definitions) {}

  /// text: after "class NAME".
  const std::string& nameOf(const std::string& stem, const std::string& text) {
    const auto [entry, isNew] = m_names.try_emplace(text);
    if (!isNew) return entry->second;
    const std::string name = PythonNames().of(stem);
    entry->second = name;
    for (int number = 2; !m_taken.insert(entry->second).second; ++number)
      entry->second = fmt::format("{}{}", name, number);
    m_definitions += fmt::format("class {}{}\n\n", entry->second, text);
    return entry->second;
  }

 private:
  std::string& m_definitions;
  std::map<std::string, std::string, std::less<>> m_names;
  std::set<std::string, std::less<>> m_taken = scriptNames();
};

/// The instance of the pipeline that a node is in; empty: none.
std::string instanceOf(const Node& node) {
  return node.block.empty() ? std::string() : node.path.substr(0, node.path.find('.'));
}

/// Consecutive nodes of one instance, or one node outside of instances and the Bias of its Linear.
struct Unit {
  std::string instance;
  std::vector<NodeId> nodes;
};

/// Writes the body of a class, op by op.
class BodyWriter {
 public:
  BodyWriter(const Graph& graph, ClassTable& classes, std::string prefix)
      : m_graph(graph), m_classes(classes), m_prefix(std::move(prefix)) {}

  /// input: a value that the module is given.
  const std::string& input(ValueId value, const std::string& name) {
    return m_names.emplace(value, m_variables.of(name)).first->second;
  }

  const std::string& variable(ValueId value) {
    const auto found = m_names.find(value);
    if (found != m_names.end()) return found->second;
    return m_names.emplace(value, m_variables.of(local(m_graph.value(value).name))).first->second;
  }

  std::string member(const std::string& path) { return m_members.of(local(path)); }
  void construct(const std::string& line) { m_constructor += line; }
  void call(const std::string& line) { m_forward += line; }

  /// All nodes of a unit. Errors: those of torchMember().
  Result<void> add(const std::vector<NodeId>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const bool hasBias = i + 1 < nodes.size() && isBiasOf(nodes[i + 1], nodes[i]);
      const Node& node = m_graph.node(nodes[i]);
      const Result<TorchMember> made =
          hasBias ? Result<TorchMember>(torchLinear(node, true)) : torchMember(m_graph, nodes[i]);
      if (!made) return made.error();
      if (hasBias)
        addLinear(node, m_graph.node(nodes[++i]), *made);
      else
        addOne(node, *made, m_graph.node(nodes[i]).outputs);
    }
    return {};
  }

  const std::string& constructor() const { return m_constructor; }
  const std::string& forward() const { return m_forward; }
  /// Parameters and their places in this module.
  const std::vector<std::pair<std::string, std::string>>& parameters() const { return m_parameters; }

 private:
  std::string local(const std::string& name) const {
    return name.starts_with(m_prefix) ? name.substr(m_prefix.size()) : name;
  }

  bool isBiasOf(NodeId bias, NodeId linear) const {
    const Node& second = m_graph.node(bias);
    const Node& first = m_graph.node(linear);
    return first.operation->name == "BasicLinear" && second.operation->name == "Bias" && first.path == second.path &&
           second.inputs[0] == first.outputs[0] && m_graph.value(first.outputs[0]).uses.size() == 1;
  }

  void addLinear(const Node& linear, const Node& bias, const TorchMember& made) {
    const std::string name = addOne(linear, made, bias.outputs);
    addParameter(bias, 0, name, "bias");
  }

  /// The member's name.
  std::string addOne(const Node& node, const TorchMember& made, const std::vector<ValueId>& outputs) {
    const std::string name = made.constructor.callee.empty() ? std::string() : member(node.path);
    if (!name.empty()) {
      PythonCall constructor = made.constructor;
      if (made.ofClass) constructor.callee = m_classes.nameOf(made.ofClass->stem, made.ofClass->text);
      m_constructor += statement(fmt::format("self.{} = ", name), constructor, "", 8);
    }
    for (std::size_t slot = 0; slot < made.parameters.size() && slot < node.parameters.size(); ++slot)
      addParameter(node, static_cast<int>(slot), name, made.parameters[slot]);
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      arguments.push_back((i < made.numUnnamed ? "" : node.operation->inputs[i].name + "=") +
                          cast(node, node.inputs[i]));
    std::vector<std::string> results;
    for (const ValueId value : outputs) results.push_back(variable(value));
    const std::string target = fmt::format("{} = ", fmt::join(results, ", "));
    if (made.expression.empty())
      m_forward += statement(target, {"self." + name, arguments}, "", 8);
    else
      m_forward += "        " + target + filled(made.expression, name, arguments) + "\n";
    return name;
  }

  /// torch.nn.Linear takes x in the dtype of its weight.
  std::string cast(const Node& node, ValueId value) {
    const DType dtype = m_graph.value(value).spec.dtype;
    const bool isOther = node.operation->name == "BasicLinear" && node.parameters.front().dtype != dtype;
    return isOther ? fmt::format("{}.to({})", variable(value), torchType(node.parameters.front().dtype))
                   : variable(value);
  }

  void addParameter(const Node& node, int slot, const std::string& member, const std::string& name) {
    m_parameters.emplace_back(node.parameterName(slot), member + "." + name);
    if (!isTrained(*node.operation, node.attributes, slot))
      m_constructor += fmt::format("        self.{}.{}.requires_grad_(False)\n", member, name);
  }

  /// {0} is the first argument wherever it is, {} the next one.
  static std::string filled(std::string text, const std::string& member, const std::vector<std::string>& arguments) {
    const auto replace = [&](std::string_view mark, const std::string& by, bool isOnce) {
      for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) {
        text.replace(at, mark.size(), by);
        if (isOnce) return;
      }
    };
    replace("{member}", member, false);
    replace("{0}", arguments.front(), false);
    for (const std::string& argument : arguments) replace("{}", argument, true);
    return text;
  }

  const Graph& m_graph;
  ClassTable& m_classes;
  std::string m_prefix;  // of the instance: "layer0."
  std::map<ValueId, std::string> m_names;
  PythonNames m_variables{{"self", "torch"}};
  PythonNames m_members{moduleMembers()};
  std::string m_constructor, m_forward;
  std::vector<std::pair<std::string, std::string>> m_parameters;
};

std::string classText(const std::string& docstring, const std::string& device, const std::string& constructor,
                      const std::vector<std::string>& arguments, const std::string& forward) {
  return fmt::format(
      "(torch.nn.Module):\n    \"\"\"{}\"\"\"\n\n    def __init__(self, {}):\n        super().__init__()\n{}\n{}{}",
      docstring, device, constructor, statement("def ", {"forward", arguments}, ":", 4), forward);
}

class PipelineWriter {
 public:
  explicit PipelineWriter(const Graph& graph)
      : m_graph(graph), m_classes(m_made.classes), m_body(graph, m_classes, "") {}

  Result<TorchModules> write(const std::string& description) && {
    std::vector<std::string> arguments = {"self"};
    for (const ValueId input : m_graph.inputs()) arguments.push_back(m_body.input(input, m_graph.value(input).name));
    for (const Unit& unit : units()) {
      const Result<void> added = unit.instance.empty() ? m_body.add(unit.nodes) : addInstance(unit);
      if (!added) return added.error();
    }
    std::vector<std::string> results;
    for (const GraphOutput& output : m_graph.outputs()) results.push_back(m_body.variable(output.value));
    m_body.call(fmt::format("        return {}\n", fmt::join(results, ", ")));
    m_made.classes +=
        "class Pipeline" + classText(description, "device=\"cpu\"", m_body.constructor(), arguments, m_body.forward());
    m_made.parameters.insert(m_made.parameters.end(), m_body.parameters().begin(), m_body.parameters().end());
    return std::move(m_made);
  }

 private:
  std::vector<Unit> units() const {
    std::vector<Unit> found;
    for (NodeId id = 0; id < static_cast<NodeId>(m_graph.nodes().size()); ++id) {
      std::string instance = instanceOf(m_graph.node(id));
      if (found.empty() || found.back().instance != instance) found.push_back({.instance = std::move(instance)});
      found.back().nodes.push_back(id);
    }
    return found;
  }

  Result<void> addInstance(const Unit& unit) {
    BodyWriter body(m_graph, m_classes, unit.instance + ".");
    std::vector<std::string> arguments = {"self"};
    std::vector<std::string> given;
    for (const ValueId value : inputsOf(unit)) {
      arguments.push_back(body.input(value, fmt::format("x{}", given.empty() ? "" : fmt::format("{}", given.size()))));
      given.push_back(m_body.variable(value));
    }
    if (Result<void> added = body.add(unit.nodes); !added) return added;
    std::vector<std::string> made, results;
    for (const ValueId value : outputsOf(unit)) {
      results.push_back(body.variable(value));
      made.push_back(m_body.variable(value));
    }
    body.call(fmt::format("        return {}\n", fmt::join(results, ", ")));
    const std::string& block = blockOf(unit);
    const std::string& name = m_classes.nameOf(
        block, classText("Block " + docText(block) + ".", "device", body.constructor(), arguments, body.forward()));
    const std::string member = m_body.member(
        m_isTaken.insert(unit.instance).second ? unit.instance : fmt::format("{}_{}", unit.instance, unit.nodes[0]));
    m_body.construct(fmt::format("        self.{} = {}(device)\n", member, name));
    m_body.call(statement(fmt::format("{} = ", fmt::join(made, ", ")), {"self." + member, given}, "", 8));
    for (const auto& [parameter, place] : body.parameters())
      m_made.parameters.emplace_back(parameter, member + "." + place);
    return {};
  }

  /// The block that an instance of the pipeline is of; its name may differ from that of a nested one.
  const std::string& blockOf(const Unit& unit) const {
    const auto isOuter = [&](NodeId id) { return std::ranges::count(m_graph.node(id).path, '.') <= 1; };
    const auto outer = std::ranges::find_if(unit.nodes, isOuter);
    return m_graph.node(outer == unit.nodes.end() ? unit.nodes.front() : *outer).block;
  }

  static bool contains(const Unit& unit, NodeId node) {
    return node >= unit.nodes.front() && node <= unit.nodes.back();
  }

  std::vector<ValueId> inputsOf(const Unit& unit) const {
    std::vector<ValueId> inputs;
    for (const NodeId id : unit.nodes)
      for (const ValueId value : m_graph.node(id).inputs)
        if (!contains(unit, m_graph.value(value).producer) && std::ranges::find(inputs, value) == inputs.end())
          inputs.push_back(value);
    return inputs;
  }

  std::vector<ValueId> outputsOf(const Unit& unit) const {
    std::vector<ValueId> outputs;
    for (const NodeId id : unit.nodes)
      for (const ValueId value : m_graph.node(id).outputs) {
        const auto isOutside = [&](const Use& use) { return !contains(unit, use.node); };
        if (m_graph.value(value).isOutput || std::ranges::any_of(m_graph.value(value).uses, isOutside))
          outputs.push_back(value);
      }
    return outputs;
  }

  const Graph& m_graph;
  TorchModules m_made;
  ClassTable m_classes;
  BodyWriter m_body;
  std::set<std::string> m_isTaken;  // instances that have a member
};

}  // namespace

Result<TorchModules> torchModules(const Graph& graph, const std::string& description) {
  return PipelineWriter(graph).write(description);
}

}  // namespace fuseline
