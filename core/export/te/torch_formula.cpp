// Prints an elementwise program as statements of PyTorch, one an instruction.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/torch_formula.h"

#include "core/export/te/python_text.h"
#include "core/export/te/te_operation.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

class ProgramText {
 public:
  ProgramText(const Node& node, ElementwiseProgram program, DType result)
      : m_node(node),
        m_program(std::move(program)),
        m_names(values(m_program)),
        m_parameters(torchParameterNames(node)),
        m_result(result) {}

  std::string inputName(int slot) { return m_names.of(m_node.operation->inputs[static_cast<std::size_t>(slot)].name); }

  std::string statements() {
    std::string text;
    for (std::size_t i = 0; i < m_program.code.size(); ++i)
      if (m_program.code[i].opcode != Opcode::Constant)
        text += fmt::format("        v{} = {}\n", i, expression(m_program.code[i]));
    return text + fmt::format("        return {}.to({})\n", value(m_program.stores[0].value, "x.new_tensor({})"),
                              torchType(m_result));
  }

 private:
  /// Inputs are not called like values, or like the module that they would hide.
  static PythonNames values(const ElementwiseProgram& program) {
    std::set<std::string, std::less<>> names = {"torch"};
    for (std::size_t i = 0; i < program.code.size(); ++i) names.insert(fmt::format("v{}", i));
    return PythonNames(std::move(names));
  }

  const Instruction& at(ValueIndex index) const { return m_program.code[static_cast<std::size_t>(index)]; }
  bool isConstant(ValueIndex index) const { return at(index).opcode == Opcode::Constant; }

  std::string value(ValueIndex index, const char* constant = "{}") const {
    return isConstant(index) ? fmt::format(fmt::runtime(constant), pythonNumber(at(index).constant))
                             : fmt::format("v{}", index);
  }

  std::string operand(const OperandPlace& place) {
    const auto slot = static_cast<std::size_t>(place.operand.slot);
    if (place.operand.kind == OperandKind::Parameter) return fmt::format("self.{}.float()", m_parameters[slot]);
    const std::string input = inputName(place.operand.slot) + ".float()";
    if (place.lanes > 1) return lane(input, place);
    return place.access == Access::Column ? input + ".unsqueeze(-1)" : input;
  }

  /// One of the two lanes, which are adjacent in the last axis.
  static std::string lane(const std::string& input, const OperandPlace& place) {
    if (place.interleave == 0) return fmt::format("{}.chunk({}, dim=-1)[{}]", input, place.lanes, place.lane);
    return fmt::format("{}.unflatten(-1, (-1, {}, {})).select(-2, {}).flatten(-2)", input, place.lanes,
                       place.interleave, place.lane);
  }

  std::string binary(const Instruction& code, const char* sign) const {
    return fmt::format("{} {} {}", value(code.a), sign, value(code.b));
  }

  /// With a number clamp() does it, and passes NaN on, too.
  std::string extremum(const Instruction& code, const char* bound, const char* function) const {
    if (isConstant(code.b)) return fmt::format("v{}.clamp({}={})", code.a, bound, value(code.b));
    if (isConstant(code.a)) return fmt::format("v{}.clamp({}={})", code.b, bound, value(code.a));
    return fmt::format("torch.{}(v{}, v{})", function, code.a, code.b);
  }

  std::string unary(const Instruction& code, const char* function) const {
    return fmt::format(fmt::runtime(function), fmt::format("v{}", code.a));
  }

  /// NaN on either side stays NaN.
  std::string less(const Instruction& code) const {
    const std::string isLess = fmt::format("({} < {}).float()", value(code.a), value(code.b));
    std::string nan;
    for (const ValueIndex side : {code.a, code.b})
      if (!isConstant(side)) nan += fmt::format("{}torch.isnan({})", nan.empty() ? "" : " | ", value(side));
    return nan.empty() ? isLess : fmt::format("torch.where({}, float(\"nan\"), {})", nan, isLess);
  }

  std::string expression(const Instruction& code) {
    switch (code.opcode) {
      case Opcode::Load: return operand(code.place);
      case Opcode::Add: return binary(code, "+");
      case Opcode::Sub: return binary(code, "-");
      case Opcode::Mul: return binary(code, "*");
      case Opcode::Div: return binary(code, "/");
      case Opcode::Max: return extremum(code, "min", "maximum");
      case Opcode::Min: return extremum(code, "max", "minimum");
      case Opcode::Less: return less(code);
      case Opcode::Neg: return unary(code, "-{}");
      case Opcode::Exp: return unary(code, "torch.exp({})");
      case Opcode::Log: return unary(code, "torch.log({})");
      case Opcode::Sqrt: return unary(code, "torch.sqrt({})");
      case Opcode::Rsqrt: return unary(code, "torch.rsqrt({})");
      case Opcode::Tanh: return unary(code, "torch.tanh({})");
      case Opcode::Erf: return unary(code, "torch.erf({})");
      case Opcode::Sigmoid: return unary(code, "torch.sigmoid({})");
      case Opcode::Gelu: return unary(code, "torch.nn.functional.gelu({}, approximate=\"tanh\")");
      case Opcode::ExactGelu: return unary(code, "torch.nn.functional.gelu({})");
      case Opcode::Silu: return unary(code, "torch.nn.functional.silu({})");
      case Opcode::Constant:
      case Opcode::Dropout:
      case Opcode::GeluGrad:
      case Opcode::ExactGeluGrad:
      case Opcode::SiluGrad: break;
    }
    return {};
  }

  const Node& m_node;
  ElementwiseProgram m_program;
  PythonNames m_names;
  std::vector<std::string> m_parameters;
  DType m_result;
};

ElementwiseProgram programOf(const Node& node) {
  ElementwiseComposer composer;
  composer.append(0, node.operation->elementwise, node.attributes, false, 1);
  return composer.finish();
}

/// Statements exist for the instructions of forward programs.
bool canBePrinted(const ElementwiseProgram& program) {
  return program.stores.size() == 1 && std::ranges::none_of(program.code, [](const Instruction& code) {
           constexpr std::array kBackward = {Opcode::Dropout, Opcode::GeluGrad, Opcode::ExactGeluGrad,
                                             Opcode::SiluGrad};
           return std::ranges::find(kBackward, code.opcode) != kBackward.end();
         });
}

std::string tensorOf(const Node& node, std::size_t slot) {
  const TensorSpec& spec = node.parameters[slot];
  const Initialisation start = node.operation->parameters[slot].initialise(node.attributes, spec);
  const std::string shape = toString(spec.shape);
  if (start.kind == Initialisation::Kind::Constant)
    return fmt::format("torch.full({}, {}, device=device, dtype={})", shape, pythonNumber(start.value),
                       torchType(spec.dtype));
  return fmt::format("torch.empty({}, device=device, dtype={}).uniform_(-{}, {})", shape, torchType(spec.dtype),
                     pythonNumber(start.value), pythonNumber(start.value));
}

std::string constructor(const Node& node) {
  std::string text = "    def __init__(self, device):\n        super().__init__()\n";
  const std::vector<std::string> names = torchParameterNames(node);
  for (std::size_t slot = 0; slot < node.parameters.size(); ++slot)
    text += statement(fmt::format("self.{} = ", names[slot]), {"torch.nn.Parameter", {tensorOf(node, slot)}}, "", 8);
  return text;
}

}  // namespace

std::vector<std::string> torchParameterNames(const Node& node) {
  PythonNames names(moduleMembers());
  std::vector<std::string> made;
  for (const ParameterSpec& parameter : node.operation->parameters) made.push_back(names.of(parameter.name));
  return made;
}

Result<std::string> torchModule(const Graph& graph, NodeId id, const std::string& className) {
  const Node& node = graph.node(id);
  const auto refused = [&](const char* reason) {
    return Error{fmt::format(
        "{}: te.ops has no {}, and it cannot be written in PyTorch: {}. Replace it by ops of te.ops, or by a Formula.",
        node.id, node.operation->name, reason)};
  };
  if (!node.operation->isElementwise()) return refused("it is not elementwise");
  ElementwiseProgram program = programOf(node);
  if (!canBePrinted(program)) return refused("it draws random numbers");
  ProgramText text(node, std::move(program), graph.value(node.outputs[0]).spec.dtype);
  std::vector<std::string> arguments;
  for (int slot = 0; slot < static_cast<int>(node.inputs.size()); ++slot) arguments.push_back(text.inputName(slot));
  return fmt::format("class {}(torch.nn.Module):\n    \"\"\"{}: {}\"\"\"\n\n{}\n    def forward(self, {}):\n{}",
                     className, docText(node.id), docText(node.operation->formula), constructor(node),
                     fmt::join(arguments, ", "), text.statements());
}

}  // namespace fuseline
