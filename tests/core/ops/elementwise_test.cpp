// Composing elementwise programs: sharing, links, absent operands, dead code, lanes.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/elementwise.h"

#include "core/ops/catalog.h"
#include "tests/support/compare.h"
#include "tests/support/elementwise_interpreter.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

const ElementwiseDefinition& definitionOf(const char* name) { return builtinOperations().find(name)->elementwise; }

Attributes scaleBy(double factor) {
  Attributes attributes;
  attributes.set("scale", factor);
  return attributes;
}

constexpr OperandKey key(int member, OperandKind kind, int slot = 0) { return {member, kind, slot}; }

std::ptrdiff_t numLoads(const ElementwiseProgram& program) {
  return std::ranges::count(program.code, Opcode::Load, &Instruction::opcode);
}

/// Member 0 scales by 2, member 1 is GELU, and only GELU's output is seen from outside.
ElementwiseProgram scaleThenGelu() {
  ElementwiseComposer composer;
  composer.link(key(1, OperandKind::Input), key(0, OperandKind::Output));
  composer.setInternal(key(0, OperandKind::Output));
  composer.append(0, definitionOf("ConstantScale"), scaleBy(2.0), false, 1);
  composer.append(1, definitionOf("GELU"), {}, false, 1);
  return composer.finish();
}

TEST(ElementwiseComposer, KeepsAnInternalTensorInRegisters) {
  EXPECT_EQ(toString(scaleThenGelu()),
            "%0 = load m0.input0\n"
            "%1 = const 2\n"
            "%2 = mul %0 %1\n"
            "%3 = gelu %2\n"
            "store m1.output0 %3\n");
}

TEST(ElementwiseComposer, AChainComputesWhatItsOpsCompute) {
  const auto results = testing::interpret(scaleThenGelu(), 1, 2, {{key(0, OperandKind::Input), {0.5, -1.5}}});
  // GELU at 1 and -3.
  EXPECT_TRUE(testing::allClose(results.at(key(1, OperandKind::Output)), std::vector{0.8411920, -0.0036374},
                                {.absolute = 5.1e-8}));
}

TEST(ElementwiseComposer, LoadsATensorOnceHoweverOftenItIsRead) {
  ElementwiseComposer composer;
  composer.append(0, definitionOf("SwiGLU"), {}, true, 1);
  EXPECT_EQ(numLoads(composer.finish()), 3);  // both halves of the input, and the gradient once
}

TEST(ElementwiseComposer, RemovesWhatNobodyReads) {
  ElementwiseComposer composer;
  composer.setAbsent(key(0, OperandKind::GradInput));
  composer.append(0, definitionOf("GELU"), {}, true, 1);
  const ElementwiseProgram program = composer.finish();
  EXPECT_TRUE(program.code.empty());
  EXPECT_TRUE(program.stores.empty());
}

TEST(ElementwiseComposer, DropsTheSumWithAnAbsentGradient) {
  ElementwiseComposer composer;
  composer.setAbsent(key(0, OperandKind::GradOutput, 1));
  composer.append(0, definitionOf("MakeExtraOutput"), {}, true, 1);
  EXPECT_EQ(toString(composer.finish()), "%0 = load m0.gradOutput0\nstore m0.gradInput0 %0\n");
}

// Bias on a tensor that is twice as wide as the grid, because SwiGLU comes after it.
TEST(ElementwiseComposer, RunsAnOpBeforeAGatedOneOnceForEachHalf) {
  ElementwiseComposer composer;
  composer.link(key(1, OperandKind::Input), key(0, OperandKind::Output));
  composer.setInternal(key(0, OperandKind::Output));
  composer.append(0, definitionOf("Bias"), {}, false, 2);
  composer.append(1, definitionOf("SwiGLU"), {}, false, 1);
  const auto results = testing::interpret(
      composer.finish(), 2, 1,
      {{key(0, OperandKind::Input), {0.0, 3.0, -2.0, 0.0}}, {key(0, OperandKind::Parameter), {1.0, 10.0}}});
  // Rows (1, 13) and (-1, 10); SiLU(1) = 0.7310586, SiLU(-1) = -0.2689414.
  EXPECT_TRUE(testing::allClose(results.at(key(1, OperandKind::Output)), std::vector{13 * 0.7310586, 10 * -0.2689414},
                                {.absolute = 1e-6}));
}

TEST(ElementwiseComposer, SumsTheGradientOfABiasBeforeAGatedOpOverBothHalves) {
  ElementwiseComposer composer;
  composer.link(key(0, OperandKind::GradOutput), key(1, OperandKind::GradInput));
  composer.append(1, definitionOf("SwiGLU"), {}, true, 1);
  composer.append(0, definitionOf("Bias"), {}, true, 2);
  const auto results = testing::interpret(
      composer.finish(), 2, 1,
      {{key(1, OperandKind::Input), {1.0, 2.0, 0.0, 4.0}}, {key(1, OperandKind::GradOutput), {1.0, 10.0}}});
  // da = silu'(a) dy b and db = silu(a) dy: (0.9276705 * 2, 0.7310586) and (0.5 * 10 * 4, 0).
  EXPECT_TRUE(testing::allClose(results.at(key(0, OperandKind::GradParameter)),
                                std::vector{0.9276705 * 2 + 20.0, 0.7310586}, {.absolute = 1e-6}));
}

TEST(ElementwiseComposer, SumsTheRowsOfBothLanesOfAnOpBeforeAGatedOne) {
  ElementwiseComposer composer;
  composer.append(0, definitionOf("ScaledSReLU"), {}, true, 2);
  const auto results = testing::interpret(composer.finish(), 2, 1,
                                          {{key(0, OperandKind::Input), {1.0, 2.0, -1.0, 3.0}},
                                           {{0, OperandKind::Input, 1}, {0.5, 2.0}},
                                           {key(0, OperandKind::GradOutput), {1.0, 10.0, 5.0, 1.0}}});
  // dy max(x, 0)^2: 1 + 10 * 4, and 0 + 9; dx = dy scale 2 max(x, 0).
  EXPECT_EQ(results.at({0, OperandKind::GradInput, 1}), (std::vector{41.0, 9.0}));
  EXPECT_EQ(results.at(key(0, OperandKind::GradInput)), (std::vector{1.0, 20.0, 0.0, 12.0}));
}

TEST(ElementwiseComposer, BroadcastsAParameterOverTheRows) {
  ElementwiseComposer composer;
  composer.append(0, definitionOf("Bias"), {}, false, 1);
  EXPECT_EQ(toString(composer.finish()),
            "%0 = load m0.input0\n"
            "%1 = load m0.parameter0:row\n"
            "%2 = add %0 %1\n"
            "store m0.output0 %2\n");
}

TEST(ElementwisePrograms, OfIdentitiesStoreWhatTheyLoad) {
  ElementwiseComposer composer;
  composer.append(0, definitionOf("Identity"), {}, false, 1);
  const std::vector<double> values = {1.0, std::nan(""), -0.0};
  const auto results = testing::interpret(composer.finish(), 3, 1, {{key(0, OperandKind::Input), values}});
  EXPECT_TRUE(testing::allClose(results.at(key(0, OperandKind::Output)), values, {}));
}

TEST(ElementwiseComposer, SumsAScalarOverBothLanes) {
  ElementwiseDefinition definition;
  definition.forward = [](ElementwiseBuilder& e, const Attributes&) {
    const ValueIndex x = e.input();
    const ValueIndex scale = e.parameterScalar();
    e.output(0, e.mul(x, scale));
  };
  definition.backward = [](ElementwiseBuilder& e, const Attributes&) {
    e.gradParameterSum(0, e.mul(e.gradOutput(), e.input()));
  };
  ElementwiseComposer forward;
  forward.append(0, definition, {}, false, 2);
  EXPECT_EQ(toString(forward.finish()),
            "%0 = load m0.input0[0/2]\n%1 = load m0.parameter0:scalar\n%2 = mul %0 %1\n"
            "%3 = load m0.input0[1/2]\n%4 = mul %3 %1\n"
            "store m0.output0[0/2] %2\nstore m0.output0[1/2] %4\n");
  ElementwiseComposer backward;
  backward.append(0, definition, {}, true, 2);
  const ElementwiseProgram program = backward.finish();
  ASSERT_EQ(program.columnSums.size(), 1U);
  EXPECT_EQ(program.columnSums[0].place.access, Access::Scalar);
  EXPECT_EQ(program.columnSums[0].place.lanes, 1);
  EXPECT_EQ(program.code[static_cast<std::size_t>(program.columnSums[0].value)].opcode, Opcode::Add);
}

}  // namespace
}  // namespace fuseline
