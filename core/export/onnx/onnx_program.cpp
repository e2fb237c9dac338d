// Instructions of an elementwise program are nodes, its operands tensors that broadcast.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_program.h"

#include <algorithm>
#include <array>
#include <vector>

namespace fuseline {

namespace {

/// Inner: the program of an activation that keeps its input quantized for backward.
ElementwiseProgram programOf(const Node& node) {
  ElementwiseComposer composer;
  const FusibleOperation& operation = *node.operation;
  composer.append(0, operation.elementwise ? operation.elementwise : operation.inner, node.attributes, false, 1);
  return composer.finish();
}

bool hasNode(const Instruction& code) {
  constexpr std::array kWithout = {Opcode::Dropout, Opcode::GeluGrad, Opcode::ExactGeluGrad, Opcode::SiluGrad};
  return std::ranges::find(kWithout, code.opcode) == kWithout.end();
}

class ProgramNodes {
 public:
  explicit ProgramNodes(OnnxGraph& graph) : m_graph(graph), m_program(programOf(graph.operation())) {}

  void add() {
    for (const Instruction& code : m_program.code) m_values.push_back(value(code));
    for (const Store& store : m_program.stores) m_graph.setOutput(store.place.operand.slot, stored(store.value));
  }

 private:
  const Instruction& codeAt(ValueIndex index) const { return m_program.code[static_cast<std::size_t>(index)]; }
  const OnnxValue& at(ValueIndex index) const { return m_values[static_cast<std::size_t>(index)]; }

  /// A value that is only loaded and stored keeps its dtype on the way.
  OnnxValue stored(ValueIndex index) {
    const Instruction& code = codeAt(index);
    return code.opcode == Opcode::Load ? operand(code.place) : at(index);
  }

  /// Loads are made once they are read: see stored().
  OnnxValue value(const Instruction& code) {
    const auto a = [&] { return read(code.a); };
    const auto unary = [&](const char* type, const char* part) { return m_graph.add(type, {a()}, part); };
    const auto binary = [&](const char* type, const char* part) {
      return m_graph.add(type, {a(), read(code.b)}, part);
    };
    switch (code.opcode) {
      case Opcode::Constant: return m_graph.number(code.constant);
      case Opcode::Add: return binary("Add", "add");
      case Opcode::Sub: return binary("Sub", "sub");
      case Opcode::Mul: return binary("Mul", "mul");
      case Opcode::Div: return binary("Div", "div");
      case Opcode::Max: return binary("Max", "max");
      case Opcode::Min: return binary("Min", "min");
      case Opcode::Less: return less(a(), read(code.b));
      case Opcode::Neg: return unary("Neg", "neg");
      case Opcode::Exp: return unary("Exp", "exp");
      case Opcode::Log: return unary("Log", "log");
      case Opcode::Sqrt: return unary("Sqrt", "sqrt");
      case Opcode::Rsqrt: return m_graph.add("Reciprocal", {unary("Sqrt", "sqrt")}, "rsqrt");
      case Opcode::Tanh: return unary("Tanh", "tanh");
      case Opcode::Erf: return unary("Erf", "erf");
      case Opcode::Sigmoid: return unary("Sigmoid", "sigmoid");
      case Opcode::Gelu: return m_graph.add("Gelu", {a()}, "gelu", {{"approximate", "tanh"}});
      case Opcode::ExactGelu: return m_graph.add("Gelu", {a()}, "gelu", {{"approximate", "none"}});
      case Opcode::Silu: return m_graph.add("Mul", {a(), unary("Sigmoid", "sigmoid")}, "silu");
      case Opcode::Load:
      case Opcode::Dropout:
      case Opcode::GeluGrad:
      case Opcode::ExactGeluGrad:
      case Opcode::SiluGrad: break;
    }
    return {};
  }

  const OnnxValue& read(ValueIndex index) {
    OnnxValue& value = m_values[static_cast<std::size_t>(index)];
    if (value.name.empty()) value = loaded(codeAt(index).place);
    return value;
  }

  /// NaN on either side stays NaN: it is the sum then.
  OnnxValue less(const OnnxValue& a, const OnnxValue& b) {
    const OnnxValue sum = m_graph.add("Add", {a, b}, "sum");
    const OnnxValue isNan = m_graph.add("IsNaN", {sum}, "is_nan");
    const OnnxValue isLess = m_graph.castFromBool(m_graph.add("Less", {a, b}, "is_less"));
    const OnnxValue result = m_graph.add("Where", {isNan, sum, isLess}, "less");
    return {result.name, DType::F32};
  }

  OnnxValue operand(const OperandPlace& place) {
    const int slot = place.operand.slot;
    return place.operand.kind == OperandKind::Input ? m_graph.input(slot) : m_graph.parameter(slot);
  }

  OnnxValue loaded(const OperandPlace& place) {
    if (place.lanes > 1) return lane(place);
    const OnnxValue whole = m_graph.cast(operand(place), DType::F32);
    if (place.access == Access::Column) return m_graph.add("Unsqueeze", {whole, m_graph.integers({-1})}, "column");
    // A vector of one element would make a vector of a scalar.
    const bool isVectorForScalar = place.access != Access::Full && m_graph.outputSpec().shape.empty();
    return isVectorForScalar ? m_graph.add("Squeeze", {whole}, "scalar") : whole;
  }

  /// One of the two lanes, which are adjacent in the last axis.
  OnnxValue lane(const OperandPlace& place) {
    if (m_wide.name.empty()) {
      m_wide = m_graph.cast(operand(place), DType::F32);
      m_lanes = place.interleave == 0 ? halves() : turns(place.interleave);
    }
    return m_lanes[static_cast<std::size_t>(place.lane)];
  }

  std::vector<OnnxValue> halves() {
    return m_graph.addSeveral("Split", {m_wide}, 2, "halves",
                              {{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{2}}});
  }

  /// x: [..., 2 H], with the two lanes interleaved in blocks.
  std::vector<OnnxValue> turns(std::int64_t block) {
    const std::int64_t H = m_graph.inputSpec().cols() / 2;
    const OnnxValue blocks = reshaped(m_wide, {H / block, 2, block}, "blocks");
    std::vector<OnnxValue> lanes;
    for (const std::int64_t lane : {0, 1}) {
      const OnnxValue taken =
          m_graph.add("Gather", {blocks, m_graph.integer(lane)}, "turn", {{"axis", std::int64_t{-2}}});
      lanes.push_back(reshaped(taken, {H}, "half"));
    }
    return lanes;
  }

  /// With other last axes; leading ones are kept, which 0 denotes.
  OnnxValue reshaped(const OnnxValue& value, std::vector<std::int64_t> last, const char* part) {
    last.insert(last.begin(), m_graph.inputSpec().shape.size() - 1, 0);
    return m_graph.add("Reshape", {value, m_graph.integers(last)}, part);
  }

  OnnxGraph& m_graph;
  ElementwiseProgram m_program;
  std::vector<OnnxValue> m_values;
  OnnxValue m_wide;
  std::vector<OnnxValue> m_lanes;
};

}  // namespace

bool hasOnnxProgram(const Node& node) {
  const FusibleOperation& operation = *node.operation;
  if (!operation.elementwise && !operation.inner) return false;
  return std::ranges::all_of(programOf(node).code, hasNode);
}

void addOnnxProgram(OnnxGraph& graph) { ProgramNodes(graph).add(); }

}  // namespace fuseline
