// Composes elementwise programs from op definitions.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/elementwise.h"

#include "core/ops/attributes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::array kOpcodeNames = {"load",       "const",
                                     "dropout",    "add",
                                     "sub",        "mul",
                                     "div",        "max",
                                     "min",        "less",
                                     "neg",        "exp",
                                     "log",        "sqrt",
                                     "rsqrt",      "tanh",
                                     "erf",        "sigmoid",
                                     "gelu",       "gelu_grad",
                                     "exact_gelu", "exact_gelu_grad",
                                     "silu",       "silu_grad"};
static_assert(kOpcodeNames.size() == static_cast<std::size_t>(Opcode::SiluGrad) + 1);

constexpr std::array kKindNames = {"input",      "parameter", "output",       "residual",
                                   "gradOutput", "gradInput", "gradParameter"};

constexpr std::array kAccessNames = {"", ":row", ":column", ":scalar"};

std::string laneText(const OperandPlace& place) {
  if (place.lanes == 1) return "";
  const std::string turns = place.interleave > 0 ? fmt::format(" by {}", place.interleave) : "";
  return fmt::format("[{}/{}{}]", place.lane, place.lanes, turns);
}

std::string toString(const OperandPlace& place) {
  return toString(place.operand) + kAccessNames[static_cast<std::size_t>(place.access)] + laneText(place);
}

std::string dropoutText(const Instruction& instruction) {
  return fmt::format("dropout{} {} below {:#x}", laneText(instruction.place), instruction.constant,
                     instruction.mask.threshold());
}

std::string toString(const Instruction& instruction) {
  if (instruction.opcode == Opcode::Load) return "load " + toString(instruction.place);
  if (instruction.opcode == Opcode::Constant) return fmt::format("const {}", instruction.constant);
  if (instruction.opcode == Opcode::Dropout) return dropoutText(instruction);
  const std::string second = instruction.b >= 0 ? fmt::format(" %{}", instruction.b) : "";
  return fmt::format("{} %{}{}", opcodeName(instruction.opcode), instruction.a, second);
}

}  // namespace

std::string_view opcodeName(Opcode opcode) { return kOpcodeNames[static_cast<std::size_t>(opcode)]; }

std::string toString(const OperandKey& key) {
  return fmt::format("m{}.{}{}", key.member, kKindNames[static_cast<std::size_t>(key.kind)], key.slot);
}

std::string toString(const ElementwiseProgram& program) {
  std::string text;
  for (std::size_t i = 0; i < program.code.size(); ++i) text += fmt::format("%{} = {}\n", i, toString(program.code[i]));
  for (const Store& store : program.stores) text += fmt::format("store {} %{}\n", toString(store.place), store.value);
  for (const ColumnSum& sum : program.columnSums)
    text += fmt::format("column_sum {} %{}\n", toString(sum.place), sum.value);
  for (const RowSum& sum : program.rowSums) text += fmt::format("row_sum {} %{}\n", toString(sum.place), sum.value);
  return text;
}

std::int64_t OperandPlace::columnOf(std::int64_t col, std::int64_t cols) const {
  if (interleave == 0) return lane * cols + col;
  return col / interleave * lanes * interleave + lane * interleave + col % interleave;
}

std::int64_t OperandPlace::runLength(std::int64_t col, std::int64_t count) const {
  return interleave == 0 ? count : std::min(interleave - col % interleave, count);
}

ElementwiseBuilder::ElementwiseBuilder(ElementwiseComposer& composer, int member, int lane, int lanes,
                                       std::int64_t interleave)
    : m_composer(composer), m_member(member), m_lane(lane), m_lanes(lanes), m_interleave(interleave) {}

OperandPlace ElementwiseBuilder::place(OperandKind kind, int slot, Access access, int lane) const {
  if (access == Access::Scalar) return {.operand = {.member = m_member, .kind = kind, .slot = slot}, .access = access};
  const bool isGatedHalf = lane >= 0;
  const int lanes = isGatedHalf ? 2 : m_lanes;
  return {.operand = {.member = m_member, .kind = kind, .slot = slot},
          .access = access,
          .lane = isGatedHalf ? lane : m_lane,
          .lanes = lanes,
          .interleave = lanes > 1 ? m_interleave : 0};
}

OperandPlace ElementwiseBuilder::columnPlace(OperandKind kind, int slot) const {
  return {.operand = {.member = m_member, .kind = kind, .slot = slot}, .access = Access::Column};
}

ValueIndex ElementwiseBuilder::input(int slot, int lane) {
  return m_composer.load(place(OperandKind::Input, slot, Access::Full, lane));
}

ValueIndex ElementwiseBuilder::parameterRow(int slot) {
  return m_composer.load(place(OperandKind::Parameter, slot, Access::Row, -1));
}

ValueIndex ElementwiseBuilder::parameterScalar(int slot) {
  return m_composer.load(place(OperandKind::Parameter, slot, Access::Scalar, -1));
}

ValueIndex ElementwiseBuilder::inputColumn(int slot) { return m_composer.load(columnPlace(OperandKind::Input, slot)); }

ValueIndex ElementwiseBuilder::gradOutput(int slot) {
  return m_composer.load(place(OperandKind::GradOutput, slot, Access::Full, -1));
}

void ElementwiseBuilder::output(int slot, ValueIndex value) {
  m_composer.store(place(OperandKind::Output, slot, Access::Full, -1), value);
}

void ElementwiseBuilder::gradInput(int slot, ValueIndex value, int lane) {
  m_composer.store(place(OperandKind::GradInput, slot, Access::Full, lane), value);
}

void ElementwiseBuilder::gradParameterColumnSum(int slot, ValueIndex value) {
  m_composer.columnSum(place(OperandKind::GradParameter, slot, Access::Row, -1), value);
}

void ElementwiseBuilder::gradParameterSum(int slot, ValueIndex value) {
  m_composer.columnSum(place(OperandKind::GradParameter, slot, Access::Scalar, -1), value);
}

void ElementwiseBuilder::gradInputRowSum(int slot, ValueIndex value) {
  m_composer.rowSum(columnPlace(OperandKind::GradInput, slot), value);
}

ValueIndex ElementwiseBuilder::dropout(const DropoutMask& mask, double kept) {
  const OperandPlace place{.lane = m_lane, .lanes = m_lanes, .interleave = m_lanes > 1 ? m_interleave : 0};
  return m_composer.emit({.opcode = Opcode::Dropout, .constant = kept, .place = place, .mask = mask});
}

ValueIndex ElementwiseBuilder::constant(double value) {
  return m_composer.emit({.opcode = Opcode::Constant, .constant = value});
}

ValueIndex ElementwiseBuilder::add(ValueIndex a, ValueIndex b) {
  if (m_composer.isZero(a)) return b;
  if (m_composer.isZero(b)) return a;
  return binary(Opcode::Add, a, b);
}

ValueIndex ElementwiseBuilder::mul(ValueIndex a, ValueIndex b) { return binary(Opcode::Mul, a, b); }

ValueIndex ElementwiseBuilder::unary(Opcode opcode, ValueIndex a) {
  return m_composer.emit({.opcode = opcode, .a = a});
}

ValueIndex ElementwiseBuilder::binary(Opcode opcode, ValueIndex a, ValueIndex b) {
  return m_composer.emit({.opcode = opcode, .a = a, .b = b});
}

std::int64_t ElementwiseDefinition::interleaveFor(const Attributes& attributes) const {
  return interleave ? interleave(attributes) : 0;
}

void ElementwiseComposer::link(OperandKey reader, OperandKey source) { m_links.set(reader, source); }

void ElementwiseComposer::setAbsent(OperandKey key) { m_absent.insert(key); }

void ElementwiseComposer::setInternal(OperandKey key) { m_internal.insert(key); }

OperandKey ElementwiseComposer::resolve(OperandKey key) const {
  for (const OperandKey* source = m_links.find(key); source; source = m_links.find(key)) key = *source;
  return key;
}

bool ElementwiseComposer::isZero(ValueIndex value) const {
  const Instruction& instruction = m_program.code[static_cast<std::size_t>(value)];
  return instruction.opcode == Opcode::Constant && instruction.constant == 0.0;
}

ValueIndex ElementwiseComposer::load(const OperandPlace& place) {
  OperandPlace source = place;
  source.operand = resolve(place.operand);
  if (m_absent.contains(source.operand)) return emit({.opcode = Opcode::Constant, .constant = 0.0});
  if (const ValueIndex* known = m_known.find({source.operand, source.lane})) return *known;
  if (const ValueIndex* loaded = m_loads.find(source)) return *loaded;
  const ValueIndex value = emit({.opcode = Opcode::Load, .place = source});
  m_loads.set(source, value);
  return value;
}

ValueIndex ElementwiseComposer::emit(Instruction instruction) {
  constexpr std::size_t kUsual = 16;
  if (m_program.code.empty()) m_program.code.reserve(kUsual);
  m_program.code.push_back(instruction);
  return static_cast<ValueIndex>(m_program.code.size()) - 1;
}

void ElementwiseComposer::store(const OperandPlace& place, ValueIndex value) {
  m_known.set({place.operand, place.lane}, value);
  if (m_absent.contains(place.operand) || m_internal.contains(place.operand)) return;
  m_program.stores.push_back({.value = value, .place = place});
}

void ElementwiseComposer::columnSum(const OperandPlace& place, ValueIndex value) {
  if (m_absent.contains(place.operand) || m_internal.contains(place.operand)) return;
  // Before a gated op a scalar gets a sum of each lane.
  const auto known = std::ranges::find(m_program.columnSums, place, &ColumnSum::place);
  if (known != m_program.columnSums.end()) {
    known->value = emit({.opcode = Opcode::Add, .a = known->value, .b = value});
    return;
  }
  m_program.columnSums.push_back({.value = value, .place = place});
}

void ElementwiseComposer::rowSum(const OperandPlace& place, ValueIndex value) {
  if (m_absent.contains(place.operand) || m_internal.contains(place.operand)) return;
  // Before a gated op a row has two lanes, which are summed together.
  const auto known = std::ranges::find(m_program.rowSums, place, &RowSum::place);
  if (known == m_program.rowSums.end())
    m_program.rowSums.push_back({.value = value, .place = place});
  else
    known->value = emit({.opcode = Opcode::Add, .a = known->value, .b = value});
}

void ElementwiseComposer::append(int member, const ElementwiseDefinition& definition, const Attributes& attributes,
                                 bool isBackward, int lanes, std::int64_t interleave) {
  const auto& define = isBackward ? definition.backward : definition.forward;
  if (definition.isGated) interleave = definition.interleaveFor(attributes);
  for (int lane = 0; lane < lanes; ++lane) {
    ElementwiseBuilder builder(*this, member, lane, lanes, interleave);
    define(builder, attributes);
  }
}

namespace {

std::vector<bool> liveInstructions(const ElementwiseProgram& program) {
  std::vector<bool> isLive(program.code.size(), false);
  for (const Store& store : program.stores) isLive[static_cast<std::size_t>(store.value)] = true;
  for (const ColumnSum& sum : program.columnSums) isLive[static_cast<std::size_t>(sum.value)] = true;
  for (const RowSum& sum : program.rowSums) isLive[static_cast<std::size_t>(sum.value)] = true;
  for (std::size_t i = program.code.size(); i-- > 0;) {
    if (!isLive[i]) continue;
    for (const ValueIndex operand : {program.code[i].a, program.code[i].b})
      if (operand >= 0) isLive[static_cast<std::size_t>(operand)] = true;
  }
  return isLive;
}

}  // namespace

ElementwiseProgram ElementwiseComposer::finish() {
  const std::vector<bool> isLive = liveInstructions(m_program);
  std::vector<ValueIndex> renumbered(m_program.code.size(), -1);
  const auto renumber = [&](ValueIndex& value) {
    if (value >= 0) value = renumbered[static_cast<std::size_t>(value)];
  };
  std::size_t numLive = 0;
  for (std::size_t i = 0; i < m_program.code.size(); ++i) {
    if (!isLive[i]) continue;
    Instruction& instruction = m_program.code[numLive] = m_program.code[i];
    renumber(instruction.a);
    renumber(instruction.b);
    renumbered[i] = static_cast<ValueIndex>(numLive++);
  }
  m_program.code.resize(numLive);
  for (Store& store : m_program.stores) renumber(store.value);
  for (ColumnSum& sum : m_program.columnSums) renumber(sum.value);
  for (RowSum& sum : m_program.rowSums) renumber(sum.value);
  return std::move(m_program);
}

}  // namespace fuseline
