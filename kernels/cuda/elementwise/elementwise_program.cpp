// Shares equal instructions, assigns registers, and fills in the device's tables.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_program.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

template <class Device, class Core>
constexpr bool isSame(Device a, Core b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(isSame(device::Element::F32, DType::F32) && isSame(device::Element::F16, DType::F16) &&
              isSame(device::Element::BF16, DType::BF16));
static_assert(isSame(device::Access::Full, Access::Full) && isSame(device::Access::Row, Access::Row) &&
              isSame(device::Access::Column, Access::Column) && isSame(device::Access::Scalar, Access::Scalar));
static_assert(isSame(device::Opcode::Load, Opcode::Load) && isSame(device::Opcode::Add, Opcode::Add) &&
              isSame(device::Opcode::Neg, Opcode::Neg) && isSame(device::Opcode::SiluGrad, Opcode::SiluGrad));

}  // namespace

device::Dropout deviceMask(const DropoutMask& mask) {
  return {.key = {mask.key()[0], mask.key()[1]},
          .stream = {mask.stream()[0], mask.stream()[1]},
          .threshold = mask.threshold(),
          .first = mask.first()};
}

namespace {

class Compiler {
 public:
  Compiler(const ElementwiseProgram& program, const std::function<DType(const OperandKey&)>& dtypeOf)
      : m_source(program), m_dtypeOf(dtypeOf) {}

  Result<DeviceProgram> compile() {
    findLastUses();
    for (std::size_t i = 0; i < m_source.code.size(); ++i) addInstruction(static_cast<ValueIndex>(i));
    for (const Store& store : m_source.stores)
      m_stores.push_back(stored(registerOf(store.value), addPlace(store.place)));
    for (const ColumnSum& sum : m_source.columnSums) addSum(sum, m_made.columnSums, m_columnSums);
    for (const RowSum& sum : m_source.rowSums) addSum(sum, m_made.rowSums, m_rowSums);
    if (Verdict fits = checkLimits(); !fits) return Error{fits.reason(), ErrorKind::RunFailed};
    fill();
    return std::move(m_made);
  }

 private:
  static constexpr int kForever = -1;

  /// Stored or summed values live to the end.
  void findLastUses() {
    m_lastUse.assign(m_source.code.size(), 0);
    for (std::size_t i = 0; i < m_source.code.size(); ++i)
      for (const ValueIndex value : {m_source.code[i].a, m_source.code[i].b})
        if (value >= 0) m_lastUse[static_cast<std::size_t>(value)] = static_cast<int>(i);
    const auto keep = [&](ValueIndex value) { m_lastUse[static_cast<std::size_t>(value)] = kForever; };
    for (const Store& store : m_source.stores) keep(store.value);
    for (const ColumnSum& sum : m_source.columnSums) keep(sum.value);
    for (const RowSum& sum : m_source.rowSums) keep(sum.value);
  }

  int registerOf(ValueIndex value) const { return m_registers[static_cast<std::size_t>(value)]; }

  void addInstruction(ValueIndex value) {
    const Instruction& instruction = m_source.code[static_cast<std::size_t>(value)];
    device::Instruction made{.opcode = static_cast<device::Opcode>(instruction.opcode),
                             .constant = static_cast<float>(instruction.constant)};
    if (instruction.a >= 0) made.a = made.b = static_cast<std::uint8_t>(registerOf(instruction.a));
    if (instruction.b >= 0) made.b = static_cast<std::uint8_t>(registerOf(instruction.b));
    if (instruction.opcode == Opcode::Load) made.operand = static_cast<std::uint8_t>(addPlace(instruction.place));
    if (instruction.opcode == Opcode::Dropout) addDropout(instruction, made);
    release(value);
    m_registers.push_back(takeRegister());
    made.out = static_cast<std::uint8_t>(m_registers.back());
    m_code.push_back(made);
  }

  /// The registers of values that `reader` is the last to read; an instruction may write where it reads.
  void release(ValueIndex reader) {
    for (std::size_t value = 0; value < m_registers.size(); ++value)
      if (m_lastUse[value] == reader) m_free.push_back(m_registers[value]);
  }

  int takeRegister() {
    if (m_free.empty()) return m_numRegisters++;
    const int taken = m_free.back();
    m_free.pop_back();
    return taken;
  }

  int addPlace(const OperandPlace& place) {
    const auto found = std::ranges::find(m_made.places, place);
    if (found == m_made.places.end()) m_made.places.push_back(place);
    const auto index = std::ranges::find(m_made.places, place) - m_made.places.begin();
    return static_cast<int>(index);
  }

  void addDropout(const Instruction& instruction, device::Instruction& made) {
    OperandPlace numbering = instruction.place;
    numbering.operand = kNoOperand;
    made.operand = static_cast<std::uint8_t>(addPlace(numbering));
    made.dropout = static_cast<std::uint8_t>(m_dropouts.size());
    m_dropouts.push_back(deviceMask(instruction.mask));
  }

  template <class Sum>
  void addSum(const Sum& sum, std::vector<OperandPlace>& places, std::vector<int>& values) {
    places.push_back(sum.place);
    values.push_back(registerOf(sum.value));
  }

  Verdict checkLimits() const {
    using Program = device::Program;
    struct Limit {
      const char* what;
      std::size_t found;
      int most;
    };
    const Limit limits[] = {{"instructions", m_code.size(), Program::kMaxInstructions},
                            {"values at once", static_cast<std::size_t>(m_numRegisters), Program::kMaxRegisters},
                            {"operands", m_made.places.size(), Program::kMaxOperands},
                            {"dropouts", m_dropouts.size(), Program::kMaxDropouts},
                            {"results", m_stores.size(), Program::kMaxStores},
                            {"column sums", m_columnSums.size(), Program::kMaxSums},
                            {"row sums", m_rowSums.size(), Program::kMaxSums}};
    for (const Limit& limit : limits)
      if (limit.found > static_cast<std::size_t>(limit.most))
        return Verdict::no(fmt::format(
            "The elementwise program has {} {}, but the GPU's interpreter supports at most {}. Disable this fusion.",
            limit.found, limit.what, limit.most));
    return Verdict::yes();
  }

  device::Operand operandOf(const OperandPlace& place) const {
    return {.interleave = place.interleave,
            .element = elementOf(m_dtypeOf(place.operand)),
            .access = static_cast<device::Access>(place.access),
            .lane = static_cast<std::uint8_t>(place.lane),
            .lanes = static_cast<std::uint8_t>(place.lanes)};
  }

  void fill() {
    device::Program& program = m_made.program;
    std::ranges::copy(m_code, program.code);
    program.numInstructions = static_cast<int>(m_code.size());
    std::ranges::transform(m_made.places, program.operands,
                           [&](const OperandPlace& place) { return operandOf(place); });
    program.numOperands = static_cast<int>(m_made.places.size());
    std::ranges::copy(m_dropouts, program.dropouts);
    program.numDropouts = static_cast<int>(m_dropouts.size());
    std::ranges::copy(m_stores, program.stores);
    program.numStores = static_cast<int>(m_stores.size());
    program.numColumnSums = fillSums(m_columnSums, program.columnSums);
    program.numRowSums = fillSums(m_rowSums, program.rowSums);
  }

  static int fillSums(const std::vector<int>& values, device::Stored* sums) {
    for (std::size_t s = 0; s < values.size(); ++s) sums[s] = stored(values[s], 0);
    return static_cast<int>(values.size());
  }

  static device::Stored stored(int value, int operand) {
    return {.value = static_cast<std::uint8_t>(value), .operand = static_cast<std::uint8_t>(operand)};
  }

  const ElementwiseProgram& m_source;
  const std::function<DType(const OperandKey&)>& m_dtypeOf;
  DeviceProgram m_made;
  std::vector<device::Instruction> m_code;
  std::vector<device::Dropout> m_dropouts;
  std::vector<device::Stored> m_stores;
  std::vector<int> m_columnSums;
  std::vector<int> m_rowSums;
  std::vector<int> m_lastUse;
  std::vector<int> m_registers;  // by value
  std::vector<int> m_free;
  int m_numRegisters = 0;
};

}  // namespace

device::Element elementOf(DType dtype) { return static_cast<device::Element>(dtype); }

Result<DeviceProgram> compileProgram(const ElementwiseProgram& program,
                                     const std::function<DType(const OperandKey&)>& dtypeOf) {
  return Compiler(program, dtypeOf).compile();
}

}  // namespace fuseline::cuda
