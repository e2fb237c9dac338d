// Activations on the strip engine: NaN passes through, and far out they reach their limits.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"
#include "kernels/cpu/elementwise/strip_engine.h"
#include "kernels/cpu/elementwise/strip_functions.h"
#include "tests/support/compare.h"
#include "tests/support/elementwise_interpreter.h"
#include "tests/support/op_samples.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::cpu {
namespace {

using testing::allClose;
using testing::OperandValues;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinityF32 = std::numeric_limits<float>::infinity();
constexpr Precision kPrecisions[] = {Precision::Full, Precision::Bf16};

/// f(a, b) as element `position` of strips of `length` ones.
float computed(Opcode opcode, Precision precision, float a, float b, std::size_t length, std::size_t position) {
  std::vector<float> x(length, 1.0F);
  std::vector<float> y(length, 1.0F);
  std::vector<float> out(length, 0.0F);
  x[position] = a;
  y[position] = b;
  computeFunction(opcode, precision)(out.data(), x.data(), y.data(), length);
  return out[position];
}

float computed(Opcode opcode, Precision precision, float a, float b = 0.0F) {
  return computed(opcode, precision, a, b, 3, 1);
}

TEST(ActivationOpcodes, MaxMinAndLessPropagateNanOfEitherOperand) {
  for (const Opcode opcode : {Opcode::Max, Opcode::Min, Opcode::Less})
    for (const Precision precision : kPrecisions)
      for (const std::size_t position : {std::size_t{0}, std::size_t{17}, std::size_t{36}}) {
        SCOPED_TRACE(opcodeName(opcode));
        EXPECT_TRUE(std::isnan(computed(opcode, precision, kNan, 2.0F, 37, position)));
        EXPECT_TRUE(std::isnan(computed(opcode, precision, 2.0F, kNan, 37, position)));
        EXPECT_TRUE(std::isnan(computed(opcode, precision, kNan, kNan, 37, position)));
      }
}

TEST(ActivationOpcodes, MaxMinAndLessCompareInfinities) {
  EXPECT_EQ(computed(Opcode::Max, Precision::Full, kInfinityF32, -kInfinityF32), kInfinityF32);
  EXPECT_EQ(computed(Opcode::Min, Precision::Full, kInfinityF32, -kInfinityF32), -kInfinityF32);
  EXPECT_EQ(computed(Opcode::Less, Precision::Full, -kInfinityF32, kInfinityF32), 1.0F);
  EXPECT_EQ(computed(Opcode::Less, Precision::Full, kInfinityF32, -kInfinityF32), 0.0F);
  EXPECT_EQ(computed(Opcode::Less, Precision::Full, 2.0F, 2.0F), 0.0F);
}

TEST(ActivationOpcodes, SigmoidReachesItsLimits) {
  for (const Precision precision : kPrecisions) {
    EXPECT_EQ(computed(Opcode::Sigmoid, precision, -1e30F), 0.0F);
    EXPECT_EQ(computed(Opcode::Sigmoid, precision, -kInfinityF32), 0.0F);
    EXPECT_NEAR(computed(Opcode::Sigmoid, precision, 1e30F), 1.0F, 1e-3F);
    EXPECT_NEAR(computed(Opcode::Sigmoid, precision, -79.0F) / std::exp(-79.0F), 1.0F, 1e-3F);
  }
}

/// The memory of an operand.
struct Buffer {
  Buffer(DType elementType, const std::vector<double>& values) : dtype(elementType), numElements(values.size()) {
    const std::vector<float> floats(values.begin(), values.end());
    bytes.resize(numElements * static_cast<std::size_t>(sizeBytes(dtype)));
    encodeFunction(dtype)(bytes.data(), floats.data(), nullptr, numElements);
  }

  std::vector<double> values() const {
    std::vector<float> floats(numElements);
    decodeFunction(dtype)(floats.data(), bytes.data(), nullptr, numElements);
    return {floats.begin(), floats.end()};
  }

  DType dtype;
  std::size_t numElements;
  std::vector<std::byte> bytes;
};

/// The results that the engine stores for a program, in place of `results`; all operands have one dtype.
OperandValues runEngine(DType dtype, const ElementwiseProgram& program, std::int64_t rows, std::int64_t cols,
                        const OperandValues& operands, const OperandValues& results) {
  std::map<OperandKey, Buffer> memory;
  for (const auto& [key, values] : operands) memory.emplace(key, Buffer(dtype, values));
  for (const auto& [key, values] : results) memory.emplace(key, Buffer(dtype, std::vector<double>(values.size(), 0.0)));
  std::map<OperandKey, StripOperand> places;
  std::vector<std::byte*> pointers;
  for (auto& [key, buffer] : memory) {
    places[key] = {.dtype = dtype, .slot = static_cast<int>(pointers.size())};
    pointers.push_back(buffer.bytes.data());
  }
  const StripEngine engine(program, cols, 1, [&](const OperandKey& key) { return places.at(key); });
  std::vector<std::byte> workspace(engine.workspaceBytes(rows) + 64);
  void* start = workspace.data();
  std::size_t space = workspace.size();
  engine.run(pointers, rows, static_cast<std::byte*>(std::align(64, 1, start, space)));
  OperandValues stored;
  for (const auto& [key, values] : results) stored[key] = memory.at(key).values();
  return stored;
}

/// From far below where exp underflows to far above, with the bends of the rectifiers, and NaN. All are bf16 numbers.
const std::vector<double> kWide = {-9984, -300, -88.5, -81, -20, -7.5, -3, -0.5,         0, 0.0009765625, 0.5, 3,
                                   7.25,  20,   89,    104, 300, 9984, 1,  std::nan(""), 2};

/// Infinities among numbers where activations are neither huge nor so small that they underflow.
const std::vector<double> kInfinite = {-HUGE_VAL, HUGE_VAL, -3, -0.5, 0.5, 3, 7.25, 20};

class Activations : public ::testing::TestWithParam<const FusibleOperation*> {
 protected:
  /// Every pair of the values in the halves of a gated op; else the values in one row.
  void expectLikeTheLanguage(const std::vector<double>& values, bool isBackward, DType dtype, double relative) const {
    const FusibleOperation& operation = *GetParam();
    const auto cols = static_cast<std::int64_t>(values.size());
    const std::int64_t rows = operation.elementwise.isGated ? cols : 1;
    ElementwiseComposer composer;
    composer.append(0, operation.elementwise, testing::fittingAttributes(operation, {2}), isBackward, 1);
    const ElementwiseProgram program = composer.finish();
    OperandValues operands = {
        {{0, OperandKind::Input, 0}, inputs(values, rows)},
        {{0, OperandKind::GradOutput, 0}, std::vector<double>(static_cast<std::size_t>(rows * cols), 0.75)}};
    if (operation.inputs.size() > 1) operands[{0, OperandKind::Input, 1}] = scales(rows);
    const OperandValues expected = testing::interpret(program, rows, cols, operands);
    const OperandValues actual = runEngine(dtype, program, rows, cols, operands, expected);
    for (const auto& [key, exact] : expected)
      EXPECT_TRUE(allClose(actual.at(key), exact, {.relative = relative, .absolute = 1e-5})) << toString(key);
  }

 private:
  /// One value a row, all bf16 numbers.
  static std::vector<double> scales(std::int64_t rows) {
    std::vector<double> values;
    for (std::int64_t row = 0; row < rows; ++row) values.push_back(0.25 + 0.0625 * static_cast<double>(row));
    return values;
  }

  static std::vector<double> inputs(const std::vector<double>& values, std::int64_t rows) {
    if (rows == 1) return values;
    std::vector<double> pairs;
    for (const double gate : values) {
      pairs.insert(pairs.end(), values.begin(), values.end());
      pairs.insert(pairs.end(), values.size(), gate);
    }
    return pairs;
  }
};

TEST_P(Activations, RunForwardLikeTheLanguageFarOutAndWithNan) {
  for (const std::vector<double>& values : {kWide, kInfinite}) {
    expectLikeTheLanguage(values, false, DType::F32, 3e-6);
    expectLikeTheLanguage(values, false, DType::BF16, 0x1p-7);
  }
  expectLikeTheLanguage(kInfinite, false, DType::F16, 0x1p-10);  // squares of the wide values leave f16
}

TEST_P(Activations, RunBackwardLikeTheLanguageFarOutAndWithNan) {
  for (const std::vector<double>& values : {kWide, kInfinite}) {
    expectLikeTheLanguage(values, true, DType::F32, 3e-6);
    expectLikeTheLanguage(values, true, DType::BF16, 0x1p-7);
  }
  expectLikeTheLanguage(kInfinite, true, DType::F16, 0x1p-10);  // squares of the wide values leave f16
}

std::vector<const FusibleOperation*> activations() {
  std::vector<const FusibleOperation*> found;
  for (const auto& operation : builtinOperations().operations())
    if (operation->category == "Activation") found.push_back(operation.get());
  return found;
}

INSTANTIATE_TEST_SUITE_P(Catalog, Activations, ::testing::ValuesIn(activations()),
                         [](const auto& test) { return test.param->name; });

}  // namespace
}  // namespace fuseline::cpu
