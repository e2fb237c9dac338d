// The strip engine against the double-precision interpreter of programs.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_engine.h"
#include "core/tensor/tensor.h"
#include "tests/support/elementwise_interpreter.h"
#include "tests/support/pipelines.h"

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::cpu {
namespace {

using testing::kFloatTypes;
using testing::OperandValues;

constexpr std::byte kGuard{0x5a};
constexpr std::size_t kGuardBytes = 64;

/// A program's operand in memory, followed by guard bytes.
struct StripBuffer {
  DType dtype = DType::F32;
  std::vector<double> values;  // as stored: rounded to dtype
  std::vector<std::byte> bytes;
};

std::size_t dataBytes(const StripBuffer& buffer) {
  return buffer.values.size() * static_cast<std::size_t>(sizeBytes(buffer.dtype));
}

StripBuffer makeBuffer(DType dtype, std::size_t count, std::mt19937& random) {
  StripBuffer buffer{.dtype = dtype, .values = std::vector<double>(count)};
  std::uniform_real_distribution<double> magnitude(0.25, 2.0);
  for (double& value : buffer.values) value = random() % 2 == 0 ? magnitude(random) : -magnitude(random);
  buffer.bytes.assign(dataBytes(buffer) + kGuardBytes, kGuard);
  encode(buffer.values, dtype, buffer.bytes.data());
  decode(buffer.bytes.data(), dtype, buffer.values);
  return buffer;
}

/// A program on a grid, with a dtype for every operand.
struct Scene {
  ElementwiseProgram program;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  std::map<OperandKey, DType> dtypes;
  int threads = 2;
};

std::map<OperandKey, OperandPlace> placesIn(const ElementwiseProgram& program) {
  std::map<OperandKey, OperandPlace> places;
  for (const Instruction& instruction : program.code)
    if (instruction.opcode == Opcode::Load) places[instruction.place.operand] = instruction.place;
  for (const Store& store : program.stores) places[store.place.operand] = store.place;
  for (const ColumnSum& sum : program.columnSums) places[sum.place.operand] = sum.place;
  for (const RowSum& sum : program.rowSums) places[sum.place.operand] = sum.place;
  return places;
}

std::set<OperandKey> outputsOf(const ElementwiseProgram& program) {
  std::set<OperandKey> outputs;
  for (const Store& store : program.stores) outputs.insert(store.place.operand);
  for (const ColumnSum& sum : program.columnSums) outputs.insert(sum.place.operand);
  for (const RowSum& sum : program.rowSums) outputs.insert(sum.place.operand);
  return outputs;
}

std::map<OperandKey, StripBuffer> makeBuffers(const Scene& scene) {
  std::mt19937 random(17);
  std::map<OperandKey, StripBuffer> buffers;
  for (const auto& [key, place] : placesIn(scene.program)) {
    const bool hasRows = place.access == Access::Full || place.access == Access::Column;
    const bool hasCols = place.access == Access::Full || place.access == Access::Row;
    const std::int64_t rows = hasRows ? scene.rows : 1;
    const std::int64_t cols = hasCols ? scene.cols * place.lanes : 1;
    const auto count = static_cast<std::size_t>(rows * cols);
    buffers[key] = makeBuffer(scene.dtypes.at(key), count, random);
  }
  return buffers;
}

/// Operands that share memory: operand -> the operand whose buffer it uses.
using Aliases = std::map<OperandKey, OperandKey>;

std::map<OperandKey, StripBuffer> runEngine(const Scene& scene, const Aliases& aliases = {}) {
  std::map<OperandKey, StripBuffer> buffers = makeBuffers(scene);
  std::vector<std::byte*> pointers;
  std::map<OperandKey, int> slots;
  for (auto& [key, buffer] : buffers) {
    slots[key] = static_cast<int>(pointers.size());
    const auto alias = aliases.find(key);
    pointers.push_back(alias == aliases.end() ? buffer.bytes.data() : buffers[alias->second].bytes.data());
  }
  const StripEngine engine(scene.program, scene.cols, scene.threads, [&](const OperandKey& key) {
    return StripOperand{scene.dtypes.at(key), slots.at(key)};
  });
  std::vector<std::byte> workspace(engine.workspaceBytes(scene.rows) + 64, kGuard);
  auto* aligned = workspace.data() + (64 - reinterpret_cast<std::size_t>(workspace.data()) % 64) % 64;
  engine.run(pointers, scene.rows, aligned);
  for (auto& [key, buffer] : buffers) {
    const auto alias = aliases.find(key);
    const StripBuffer& memory = alias == aliases.end() ? buffer : buffers[alias->second];
    decode(memory.bytes.data(), buffer.dtype, buffer.values);
  }
  return buffers;
}

/// Half an ulp of the format (bf16: and half of it for its reduced functions), and for column sums the rounding of
/// float32 sums. Where values near 1 cancel, their reduced functions leave an absolute error.
double allowed(const Scene& scene, const OperandKey& key, double expected, double scale) {
  const DType dtype = scene.dtypes.at(key);
  const double relative = dtype == DType::BF16 ? 1.5 * 0x1p-8 : dtype == DType::F16 ? 0x1p-10 : 0.0;
  const double absolute = dtype == DType::BF16 ? 0x1p-13 : 1e-6;
  return (relative + 2e-6) * std::abs(expected) + 2e-6 * scale + absolute;
}

/// A bound of the sum of magnitudes in one element; 1 if nothing is summed.
double numAdded(const Scene& scene, const OperandPlace& place) {
  if (place.access == Access::Full) return 1.0;
  const std::int64_t rows = place.access == Access::Column ? 1 : scene.rows;
  const std::int64_t cols = place.access == Access::Row ? 1 : scene.cols;
  return 4.0 * static_cast<double>(rows * cols);
}

/// A sum over many elements may leave the range of f16, which ends at 65504.
bool isOverflow(DType dtype, double value, double expected) {
  return dtype == DType::F16 && std::isinf(value) && std::abs(expected) > 65000.0;
}

std::string firstError(const Scene& scene, const Aliases& aliases = {}) {
  OperandValues inputs;
  for (const auto& [key, buffer] : makeBuffers(scene)) inputs[key] = buffer.values;
  const OperandValues expected = testing::interpret(scene.program, scene.rows, scene.cols, inputs);
  const auto actual = runEngine(scene, aliases);
  for (const OperandKey& key : outputsOf(scene.program)) {
    const std::vector<double>& values = actual.at(key).values;
    const double scale = numAdded(scene, placesIn(scene.program).at(key));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!isOverflow(scene.dtypes.at(key), values[i], expected.at(key)[i]) &&
          !(std::abs(values[i] - expected.at(key)[i]) <= allowed(scene, key, expected.at(key)[i], scale)))
        return toString(key) + "[" + std::to_string(i) + "]: " + std::to_string(values[i]) + " instead of " +
               std::to_string(expected.at(key)[i]) + "\n" + toString(scene.program);
    const std::vector<std::byte>& bytes = actual.at(key).bytes;
    for (std::size_t i = dataBytes(actual.at(key)); i < bytes.size(); ++i)
      if (bytes[i] != kGuard) return toString(key) + " was written beyond its end";
  }
  return "";
}

OperandKey input(int slot) { return {.kind = OperandKind::Input, .slot = slot}; }
OperandKey output(int slot) { return {.kind = OperandKind::Output, .slot = slot}; }

Instruction load(int slot, Access access = Access::Full, int lane = 0, int lanes = 1) {
  return {.opcode = Opcode::Load, .place = {.operand = input(slot), .access = access, .lane = lane, .lanes = lanes}};
}

std::map<OperandKey, DType> allOf(const ElementwiseProgram& program, DType dtype) {
  std::map<OperandKey, DType> dtypes;
  for (const auto& [key, place] : placesIn(program)) dtypes[key] = dtype;
  return dtypes;
}

constexpr std::pair<std::int64_t, std::int64_t> kStripGrids[] = {{1, 1},   {1, 15},   {3, 1},    {2, 16},   {5, 17},
                                                                 {7, 129}, {300, 33}, {3, 513},  {2, 1027}, {70, 700},
                                                                 {0, 5},   {4, 4099}, {1000, 3}, {257, 256}};
void expectRight(const ElementwiseProgram& program) {
  for (const DType dtype : kFloatTypes)
    for (const auto& [rows, cols] : kStripGrids) {
      const Scene scene{.program = program, .rows = rows, .cols = cols, .dtypes = allOf(program, dtype)};
      ASSERT_EQ(firstError(scene), "") << rows << " x " << cols << " " << dtypeName(dtype);
    }
}

TEST(StripEngine, RunsEveryOpcode) {
  for (int code = static_cast<int>(Opcode::Add); code <= static_cast<int>(Opcode::SiluGrad); ++code) {
    const auto opcode = static_cast<Opcode>(code);
    ElementwiseProgram program{.code = {load(0), load(1)}, .stores = {{3, {.operand = output(0)}}}};
    // Squares are positive, for logarithms and roots.
    program.code.push_back({.opcode = Opcode::Mul, .a = 0, .b = 0});
    const bool isPositiveOnly = opcode == Opcode::Log || opcode == Opcode::Sqrt || opcode == Opcode::Rsqrt;
    const bool isBinary = opcode <= Opcode::Less;
    program.code.push_back({.opcode = opcode, .a = isPositiveOnly ? 2 : 0, .b = isBinary ? 1 : -1});
    ASSERT_NO_FATAL_FAILURE(expectRight(program)) << opcodeName(opcode);
  }
}

TEST(StripEngine, ReadsRowOperandsAndConstants) {
  expectRight({.code = {load(0),
                        load(1, Access::Row),
                        {.opcode = Opcode::Constant, .constant = 1.5},
                        {.opcode = Opcode::Mul, .a = 0, .b = 2},
                        {.opcode = Opcode::Add, .a = 3, .b = 1}},
               .stores = {{4, {.operand = output(0)}}}});
}

TEST(StripEngine, ReadsScalarsAndSumsOverAllElements) {
  expectRight({.code = {load(0), load(1, Access::Scalar), {.opcode = Opcode::Mul, .a = 0, .b = 1}},
               .stores = {{2, {.operand = output(0)}}},
               .columnSums = {{0, {.operand = output(1), .access = Access::Scalar}},
                              {2, {.operand = output(2), .access = Access::Row}}}});
}

TEST(StripEngine, SumsOverNoColumnsToZero) {
  const ElementwiseProgram program{.code = {load(0)},
                                   .columnSums = {{0, {.operand = output(0), .access = Access::Scalar}}}};
  EXPECT_EQ(firstError({.program = program, .rows = 5, .cols = 0, .dtypes = allOf(program, DType::F32)}), "");
}

TEST(StripEngine, ReadsAndWritesLanes) {
  expectRight({.code = {load(0, Access::Full, 0, 2),
                        load(0, Access::Full, 1, 2),
                        load(1),
                        {.opcode = Opcode::Silu, .a = 0},
                        {.opcode = Opcode::Mul, .a = 3, .b = 2},
                        {.opcode = Opcode::Mul, .a = 1, .b = 2}},
               .stores = {{4, {.operand = output(0), .lane = 1, .lanes = 2}},
                          {5, {.operand = output(0), .lane = 0, .lanes = 2}}}});
}

TEST(StripEngine, ReadsWritesAndSumsInterleavedLanes) {
  const auto at = [](OperandKey operand, Access access, int lane) {
    return OperandPlace{.operand = operand, .access = access, .lane = lane, .lanes = 2, .interleave = 8};
  };
  const ElementwiseProgram program{
      .code = {{.opcode = Opcode::Load, .place = at(input(0), Access::Full, 0)},
               {.opcode = Opcode::Load, .place = at(input(0), Access::Full, 1)},
               {.opcode = Opcode::Load, .place = at(input(1), Access::Row, 0)},
               {.opcode = Opcode::Load, .place = at(input(1), Access::Row, 1)},
               {.opcode = Opcode::Mul, .a = 0, .b = 3},
               {.opcode = Opcode::Add, .a = 1, .b = 2}},
      .stores = {{5, at(output(0), Access::Full, 0)}, {4, at(output(0), Access::Full, 1)}},
      .columnSums = {{4, at(output(1), Access::Row, 0)}, {5, at(output(1), Access::Row, 1)}}};
  for (const DType dtype : kFloatTypes)
    for (const auto& [rows, cols] : {std::pair{3, 8}, {70, 64}, {2, 1032}, {300, 520}}) {
      const Scene scene{.program = program, .rows = rows, .cols = cols, .dtypes = allOf(program, dtype)};
      EXPECT_EQ(firstError(scene), "") << rows << " x " << cols;
      EXPECT_EQ(firstError(scene, {{output(0), input(0)}}), "") << rows << " x " << cols << " in place";
    }
}

TEST(StripEngine, SumsColumnsInLanes) {
  const OperandPlace sum{.operand = output(1), .access = Access::Row};
  expectRight({.code = {load(0), load(1), {.opcode = Opcode::Mul, .a = 0, .b = 1}},
               .stores = {{2, {.operand = output(0)}}},
               .columnSums = {{2, sum}, {0, {.operand = output(2), .access = Access::Row}}}});
  expectRight({.code = {load(0, Access::Full, 0, 2), load(0, Access::Full, 1, 2)},
               .columnSums = {{1, {.operand = output(0), .access = Access::Row, .lane = 0, .lanes = 2}},
                              {0, {.operand = output(0), .access = Access::Row, .lane = 1, .lanes = 2}}}});
}

TEST(StripEngine, ReadsColumnOperandsAndSumsRows) {
  const OperandPlace sum{.operand = output(1), .access = Access::Column};
  const std::vector<Instruction> code = {load(0),
                                         load(1, Access::Column),
                                         load(2),
                                         {.opcode = Opcode::Mul, .a = 0, .b = 1},
                                         {.opcode = Opcode::Mul, .a = 0, .b = 2}};
  expectRight({.code = code, .stores = {{3, {.operand = output(0)}}}, .rowSums = {{4, sum}}});
  expectRight({.code = code,
               .columnSums = {{3, {.operand = output(0), .access = Access::Row}}},
               .rowSums = {{4, sum}, {1, {.operand = output(2), .access = Access::Column}}}});
}

TEST(StripEngine, SumsRowsOfLanes) {
  expectRight({.code = {load(0, Access::Full, 0, 2),
                        load(0, Access::Full, 1, 2),
                        load(1, Access::Column),
                        {.opcode = Opcode::Mul, .a = 0, .b = 2},
                        {.opcode = Opcode::Mul, .a = 1, .b = 2}},
               .stores = {{3, {.operand = output(0), .lane = 0, .lanes = 2}},
                          {4, {.operand = output(0), .lane = 1, .lanes = 2}}},
               .rowSums = {{0, {.operand = output(1), .access = Access::Column}}}});
}

TEST(StripEngine, SumsRowsBeforeTheirValuesAreOverwrittenInPlace) {
  // dscales may take the memory of scales, and dx that of x.
  const ElementwiseProgram program{.code = {load(0), load(1, Access::Column), {.opcode = Opcode::Mul, .a = 0, .b = 1}},
                                   .stores = {{2, {.operand = output(0)}}},
                                   .rowSums = {{0, {.operand = output(1), .access = Access::Column}}}};
  for (const DType dtype : kFloatTypes)
    for (const auto& [rows, cols] : kStripGrids) {
      const Scene scene{.program = program, .rows = rows, .cols = cols, .dtypes = allOf(program, dtype)};
      EXPECT_EQ(firstError(scene, {{output(0), input(0)}, {output(1), input(1)}}), "") << rows << " x " << cols;
    }
}

TEST(StripEngine, SumsRowsToTheSameBitsOnAnyNumberOfThreads) {
  const ElementwiseProgram program{.code = {load(0)},
                                   .rowSums = {{0, {.operand = output(0), .access = Access::Column}}}};
  Scene scene{.program = program, .rows = 61, .cols = 3000, .dtypes = allOf(program, DType::F32), .threads = 1};
  const auto alone = runEngine(scene)[output(0)].bytes;
  scene.threads = 3;
  EXPECT_EQ(runEngine(scene)[output(0)].bytes, alone);
}

TEST(StripEngine, SumsOfRowsWithoutColumnsAreZero) {
  const ElementwiseProgram program{.code = {load(0)},
                                   .rowSums = {{0, {.operand = output(0), .access = Access::Column}}}};
  const Scene scene{.program = program, .rows = 5, .cols = 0, .dtypes = allOf(program, DType::F32)};
  EXPECT_EQ(runEngine(scene)[output(0)].values, std::vector<double>(5, 0.0));
}

Instruction dropout(double p, int lane = 0, int lanes = 1) {
  return {.opcode = Opcode::Dropout,
          .constant = 1.5,
          .place = {.lane = lane, .lanes = lanes},
          .mask = DropoutMask(p, 0x123456789abcdef, "op")};
}

TEST(StripEngine, DropsTheElementsThatTheMaskDrops) {
  expectRight({.code = {load(0), dropout(0.3), {.opcode = Opcode::Mul, .a = 0, .b = 1}},
               .stores = {{2, {.operand = output(0)}}, {1, {.operand = output(1)}}}});
  expectRight({.code = {dropout(0.5, 1, 2), dropout(0.5, 0, 2)},
               .stores = {{0, {.operand = output(0), .lane = 1, .lanes = 2}},
                          {1, {.operand = output(0), .lane = 0, .lanes = 2}}}});
  expectRight({.code = {dropout(0.25)},
               .stores = {{0, {.operand = output(0)}}},
               .columnSums = {{0, {.operand = output(1), .access = Access::Row}}}});
}

TEST(StripEngine, NumbersTheElementsOfPartsFromTheirFirstRow) {
  constexpr std::int64_t kRows = 7;
  constexpr std::int64_t kCols = 29;
  const ElementwiseProgram program{.code = {dropout(0.5)}, .stores = {{0, {.operand = output(0)}}}};
  const StripEngine engine(program, kCols, 1, [](const OperandKey&) { return StripOperand{DType::F32, 0}; });
  std::vector<float> part(kRows * kCols);
  std::vector<std::byte> workspace(engine.workspaceBytes(kRows) + 64);
  auto* aligned = workspace.data() + (64 - reinterpret_cast<std::size_t>(workspace.data()) % 64) % 64;
  std::byte* const pointers[] = {reinterpret_cast<std::byte*>(part.data())};
  for (const std::int64_t firstRow : {0, 1, 1000}) {
    engine.run(pointers, kRows, aligned, firstRow);
    for (std::size_t i = 0; i < part.size(); ++i)
      ASSERT_EQ(part[i] != 0.0F, program.code[0].mask.keeps(static_cast<std::size_t>(firstRow * kCols) + i)) << i;
  }
}

TEST(StripEngine, StoresALoadedValueAndTheSameValueTwice) {
  expectRight({.code = {load(0), {.opcode = Opcode::Neg, .a = 0}},
               .stores = {{0, {.operand = output(0)}}, {1, {.operand = output(1)}}, {1, {.operand = output(2)}}}});
}

TEST(StripEngine, ConvertsBetweenDTypes) {
  const ElementwiseProgram program{.code = {load(0), load(1), {.opcode = Opcode::Add, .a = 0, .b = 1}},
                                   .stores = {{2, {.operand = output(0)}}, {0, {.operand = output(1)}}}};
  for (const DType a : kFloatTypes)
    for (const DType b : kFloatTypes)
      for (const DType c : kFloatTypes) {
        const std::map<OperandKey, DType> dtypes = {{input(0), a}, {input(1), b}, {output(0), c}, {output(1), b}};
        EXPECT_EQ(firstError({.program = program, .rows = 5, .cols = 530, .dtypes = dtypes}), "");
      }
}

TEST(StripEngine, WorksInPlaceOnAnyOfItsInputs) {
  // Both inputs are read again after the first store's value is known.
  const ElementwiseProgram program{
      .code = {load(0),
               load(1),
               {.opcode = Opcode::Add, .a = 0, .b = 1},
               {.opcode = Opcode::Mul, .a = 2, .b = 0},
               {.opcode = Opcode::Sub, .a = 3, .b = 1}},
      .stores = {{2, {.operand = output(0)}}, {4, {.operand = output(1)}}, {0, {.operand = output(2)}}}};
  for (const DType dtype : kFloatTypes)
    for (int first = 0; first < 2; ++first) {
      const Scene scene{.program = program, .rows = 9, .cols = 600, .dtypes = allOf(program, dtype)};
      EXPECT_EQ(firstError(scene, {{output(0), input(first)}, {output(1), input(1 - first)}}), "");
    }
}

TEST(StripEngine, ColumnSumsAreTheSameInEveryRun) {
  const ElementwiseProgram program{.code = {load(0)},
                                   .columnSums = {{0, {.operand = output(0), .access = Access::Row}}}};
  const Scene scene{.program = program, .rows = 1000, .cols = 700, .dtypes = allOf(program, DType::F32)};
  EXPECT_EQ(runEngine(scene)[output(0)].bytes, runEngine(scene)[output(0)].bytes);
}

TEST(StripEngine, KeepsLongColumnSumsExact) {
  // A single float32 sum over this number of rows would be off by more than 1e-5.
  const ElementwiseProgram program{.code = {load(0), {.opcode = Opcode::Mul, .a = 0, .b = 0}},
                                   .columnSums = {{1, {.operand = output(0), .access = Access::Row}}}};
  const Scene scene{.program = program, .rows = 20000, .cols = 300, .dtypes = allOf(program, DType::F32)};
  OperandValues inputs;
  for (const auto& [key, buffer] : makeBuffers(scene)) inputs[key] = buffer.values;
  const OperandValues expected = testing::interpret(program, scene.rows, scene.cols, inputs);
  const StripBuffer actual = runEngine(scene).at(output(0));
  for (std::size_t i = 0; i < actual.values.size(); ++i)
    ASSERT_NEAR(actual.values[i], expected.at(output(0))[i], 3e-6 * expected.at(output(0))[i]);
}

// Random programs: any opcodes that keep values tame, any operands, dtypes and grids.

OperandPlace randomPlace(int slot, OperandKind kind, int lanes, std::int64_t interleave) {
  return {.operand = {.kind = kind, .slot = slot},
          .lane = *rc::gen::inRange(0, lanes),
          .lanes = lanes,
          .interleave = lanes > 1 ? interleave : 0};
}

Access randomAccess() {
  return *rc::gen::element(Access::Full, Access::Full, Access::Row, Access::Column, Access::Scalar);
}

OperandPlace randomInput(int slot, std::int64_t interleave) {
  const Access access = slot > 0 ? randomAccess() : Access::Full;
  const bool hasLanes = access == Access::Full || access == Access::Row;
  const int lanes = hasLanes ? *rc::gen::inRange(1, 3) : 1;
  OperandPlace place = randomPlace(slot, OperandKind::Input, lanes, interleave);
  place.access = access;
  return place;
}

/// interleave: of operands with two lanes; 0 or a divisor of the columns.
ElementwiseProgram randomProgram(std::int64_t interleave) {
  ElementwiseProgram program;
  const int numInputs = *rc::gen::inRange(1, 4);
  for (int slot = 0; slot < numInputs; ++slot)
    program.code.push_back({.opcode = Opcode::Load, .place = randomInput(slot, interleave)});
  if (*rc::gen::arbitrary<bool>())
    program.code.push_back({.opcode = Opcode::Dropout,
                            .constant = 1.25,
                            .place = randomPlace(0, OperandKind::Input, *rc::gen::inRange(1, 3), interleave),
                            .mask = DropoutMask(0.25, *rc::gen::arbitrary<std::uint64_t>(), "op")});
  program.code.push_back({.opcode = Opcode::Constant, .constant = 0.75});
  static const std::vector<Opcode> kTame = {Opcode::Add,       Opcode::Sub,          Opcode::Max,     Opcode::Min,
                                            Opcode::Neg,       Opcode::Tanh,         Opcode::Gelu,    Opcode::GeluGrad,
                                            Opcode::Silu,      Opcode::SiluGrad,     Opcode::Sigmoid, Opcode::Erf,
                                            Opcode::ExactGelu, Opcode::ExactGeluGrad};
  const int numOperations = *rc::gen::inRange(0, 8);
  for (int i = 0; i < numOperations; ++i) {
    const auto numValues = static_cast<int>(program.code.size());
    const Opcode opcode = *rc::gen::elementOf(kTame);
    const int b = opcode <= Opcode::Less ? *rc::gen::inRange(0, numValues) : -1;
    program.code.push_back({.opcode = opcode, .a = *rc::gen::inRange(0, numValues), .b = b});
  }
  const auto numValues = static_cast<int>(program.code.size());
  for (int slot = 0; slot < *rc::gen::inRange(1, 4); ++slot)
    program.stores.push_back({*rc::gen::inRange(0, numValues), randomPlace(slot, OperandKind::Output, 1, 0)});
  if (*rc::gen::arbitrary<bool>()) {
    OperandPlace place = randomPlace(7, OperandKind::GradParameter, 1, 0);
    place.access = *rc::gen::element(Access::Row, Access::Scalar);
    program.columnSums.push_back({*rc::gen::inRange(0, numValues), place});
  }
  for (int slot = 8; slot < 8 + *rc::gen::inRange(0, 3); ++slot)
    program.rowSums.push_back({*rc::gen::inRange(0, numValues),
                               {.operand = {.kind = OperandKind::GradInput, .slot = slot}, .access = Access::Column}});
  return program;
}

TEST(StripEngine, RunsRandomProgramsLikeTheInterpreter) {
  EXPECT_TRUE(rc::check("engine equals interpreter", [] {
    const auto interleave = *rc::gen::element<std::int64_t>(0, 0, 1, 3, 32, 600);
    const auto widths = *rc::gen::inRange<std::int64_t>(1, 700);
    Scene scene{.program = randomProgram(interleave),
                .rows = *rc::gen::inRange<std::int64_t>(0, 90),
                .cols = interleave == 0 ? widths : interleave * (1 + widths % (1 + 1200 / interleave)),
                .threads = *rc::gen::inRange(1, 4)};
    for (const auto& [key, place] : placesIn(scene.program))
      scene.dtypes[key] = *rc::gen::element(DType::F32, DType::BF16, DType::F16);
    RC_ASSERT(firstError(scene) == "");
  }));
}

}  // namespace
}  // namespace fuseline::cpu
