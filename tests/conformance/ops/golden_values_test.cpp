// Golden values: numbers that were computed elsewhere, from the published formulas, to seven decimals.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr Tolerance kSevenDecimals = {.relative = 0.0, .absolute = 5.1e-8};

using Values = std::vector<double>;

/// One op with its data; the attributes are the defaults.
struct Call {
  explicit Call(const char* name, const Shape& shape)
      : operation(*builtinOperations().find(name)), attributes(fittingAttributes(operation, shape)) {}

  ReferenceForward forward() const { return operation.forwardCompute(attributes, inputs, parameters); }

  ReferenceBackward backward(const ReferenceTensor& dy) const {
    const ReferenceForward result = forward();
    std::vector<TensorSpec> specs;
    for (const ReferenceTensor& input : inputs) specs.push_back({.shape = input.shape});
    const GradientNeeds needs{.inputs = std::vector<bool>(inputs.size(), true),
                              .parameters = std::vector<bool>(parameters.size(), true)};
    SavedValues saved;
    saved.setState(operation.saveContext({attributes, specs, needs}).state);
    for (int slot = 0; slot < static_cast<int>(inputs.size()); ++slot)
      saved.add({OperandKind::Input, slot}, inputs[static_cast<std::size_t>(slot)]);
    for (int slot = 0; slot < static_cast<int>(parameters.size()); ++slot)
      saved.add({OperandKind::Parameter, slot}, parameters[static_cast<std::size_t>(slot)]);
    for (int slot = 0; slot < static_cast<int>(result.residuals.size()); ++slot)
      saved.add({OperandKind::Residual, slot}, result.residuals[static_cast<std::size_t>(slot)]);
    return operation.backwardCompute(attributes, saved, std::array{dy});
  }

  const FusibleOperation& operation;
  Attributes attributes;
  std::vector<ReferenceTensor> inputs;
  std::vector<ReferenceTensor> parameters;
};

const Values kX = {-3, -1, -0.5, 0, 0.5, 1, 2, 3};
const Values kGelu = {-0.0036374, -0.1588080, -0.1542860, 0, 0.3457140, 0.8411920, 1.9545977, 2.9963626};
const Values kGeluGrad = {-0.0115842, -0.0829641, 0.1326301, 0.5, 0.8673699, 1.0829641, 1.0860993, 1.0115842};
// torch.nn.functional.gelu in float64.
const Values kExactGelu = {-0.0040497, -0.1586553, -0.1542688, 0, 0.3457312, 0.8413447, 1.9544997, 2.9959503};
const Values kExactGeluGrad = {-0.0119456, -0.0833155, 0.1325049, 0.5000000,
                               0.8674951,  1.0833155,  1.0852318, 1.0119456};
const Values kSilu = {-0.1422776, -0.2689414, -0.1887703, 0, 0.3112297, 0.7310586, 1.7615942, 2.8577224};
const Values kSiluGrad = {-0.0881041, 0.0723295, 0.2600388, 0.5, 0.7399612, 0.9276705, 1.0907842, 1.0881041};

const Values kQuickGelu = {-0.0180713, -0.1542042, -0.1496116, 0, 0.3503884, 0.8457958, 1.9356586, 2.9819287};
const Values kQuickGeluGrad = {-0.0245483, -0.0677796, 0.1207781, 0.5, 0.8792219, 1.0677796, 1.0738154, 1.0245483};
const Values kRelu = {0, 0, 0, 0, 0.5, 1, 2, 3};
const Values kReluGrad = {0, 0, 0, 0, 1, 1, 1, 1};
const Values kSquaredRelu = {0, 0, 0, 0, 0.25, 1, 4, 9};
const Values kSquaredReluGrad = {0, 0, 0, 0, 1, 2, 4, 6};
// 1 / (1 + exp(-x)), and s (1 - s) of it: computed by hand.
const Values kSigmoid = {0.0474259, 0.2689414, 0.3775407, 0.5, 0.6224593, 0.7310586, 0.8807971, 0.9525741};
const Values kSigmoidGrad = {0.0451767, 0.1966119, 0.2350037, 0.25, 0.2350037, 0.1966119, 0.1049936, 0.0451767};

void expectUnary(const char* name, const Values& y, const Values& dx, const char* approximate = nullptr) {
  SCOPED_TRACE(name);
  Call call(name, {8});
  if (approximate) call.attributes.set("approximate", std::string(approximate));
  call.inputs = {{{8}, kX}};
  EXPECT_TRUE(allClose(call.forward().outputs[0].values, y, kSevenDecimals));
  EXPECT_TRUE(allClose(call.backward({{8}, Values(8, 1.0)}).inputs[0].values, dx, kSevenDecimals));
}

// With a linear half of 1 and dy = 1 the gated op is its activation, and so is the gradient of the linear half.
void expectGated(const char* name, const Values& activated, const Values& slope, const char* approximate = nullptr) {
  SCOPED_TRACE(name);
  Call call(name, {16});
  if (approximate) call.attributes.set("approximate", std::string(approximate));
  Values halves = kX;
  halves.insert(halves.end(), 8, 1.0);
  Values gradients = slope;
  gradients.insert(gradients.end(), activated.begin(), activated.end());
  call.inputs = {{{16}, halves}};
  EXPECT_TRUE(allClose(call.forward().outputs[0].values, activated, kSevenDecimals));
  EXPECT_TRUE(allClose(call.backward({{8}, Values(8, 1.0)}).inputs[0].values, gradients, kSevenDecimals));
}

TEST(GoldenValues, UnaryActivations) {
  expectUnary("GELU", kGelu, kGeluGrad);
  expectUnary("GELU", kGelu, kGeluGrad, "tanh");
  expectUnary("GELU", kExactGelu, kExactGeluGrad, "none");
  expectUnary("QGELU", kQuickGelu, kQuickGeluGrad);
  expectUnary("ReLU", kRelu, kReluGrad);
  expectUnary("SReLU", kSquaredRelu, kSquaredReluGrad);
  expectUnary("SiLU", kSilu, kSiluGrad);
}

TEST(GoldenValues, GatedActivationsActivateTheFirstHalf) {
  expectGated("GLU", kSigmoid, kSigmoidGrad);
  expectGated("GEGLU", kGelu, kGeluGrad);
  expectGated("GEGLU", kExactGelu, kExactGeluGrad, "none");
  expectGated("QGEGLU", kQuickGelu, kQuickGeluGrad);
  expectGated("ReGLU", kRelu, kReluGrad);
  expectGated("SReGLU", kSquaredRelu, kSquaredReluGrad);
  expectGated("SwiGLU", kSilu, kSiluGrad);
}

/// a, b -> out, da, db, with dy = 1.
struct GatePoint {
  double a, b, out, da, db;
};

void expectGatePoints(const char* name, const std::vector<GatePoint>& points) {
  Call call(name, {2});
  for (const GatePoint& point : points) {
    SCOPED_TRACE(::testing::Message() << name << " of " << point.a << ", " << point.b);
    call.inputs = {{{2}, {point.a, point.b}}};
    EXPECT_TRUE(allClose(call.forward().outputs[0].values, Values{point.out}, kSevenDecimals));
    EXPECT_TRUE(allClose(call.backward({{1}, {1.0}}).inputs[0].values, Values{point.da, point.db}, kSevenDecimals));
  }
}

TEST(GoldenValues, ClampedSwiglu) {
  expectGatePoints("ClampedSwiGLU", {{1, 2, 2.5373873, 3.2033388, 0.8457958},
                                     {7, 7, 55.9996250, 8.0005846, 6.9999531},
                                     {7.5, 1, 13.9999063, 0, 6.9999531},
                                     {-8, 3, -0.0000391, -0.0000616, -0.0000098},
                                     {2, -7.5, -11.6139517, -6.4428921, 0},
                                     {0.5, -1, 0, 0, 0.3503884}});
}

TEST(GoldenValues, Situglu) {
  expectGatePoints("SiTUGLU", {{1, 2, 1.4293511, 1.7558990, 0.7116354},
                               {8, 30, 80.3396524, 1.4989078, 1.1757963},
                               {-2, 5, -1.0872561, -0.4950690, -0.2117590}});
}

// Two rows of one pair each: the unscaled values are those of the ops without scales, with dy = 1.
void expectScaledPoints(const char* name, const GatePoint& first, const GatePoint& second) {
  SCOPED_TRACE(name);
  constexpr Tolerance kTwoUnits = {.relative = 0.0, .absolute = 1.1e-7};  // seven decimals, times 2
  Call call(name, {2, 2});
  call.inputs = {{{2, 2}, {first.a, first.b, second.a, second.b}}, {{2}, {0.5, -2.0}}};
  EXPECT_TRUE(allClose(call.forward().outputs[0].values, Values{0.5 * first.out, -2.0 * second.out}, kTwoUnits));
  const ReferenceBackward backward = call.backward({{2, 1}, {1.0, 1.0}});
  EXPECT_TRUE(allClose(backward.inputs[0].values,
                       Values{0.5 * first.da, 0.5 * first.db, -2.0 * second.da, -2.0 * second.db}, kTwoUnits));
  EXPECT_TRUE(allClose(backward.inputs[1].values, Values{first.out, second.out}, kSevenDecimals));
}

TEST(GoldenValues, ScaledGates) {
  expectScaledPoints("ScaledClampedQGeGLU", {1, 2, 2.5373873, 3.2033388, 0.8457958}, {0.5, -1, 0, 0, 0.3503884});
  expectScaledPoints("ScaledSiTUGLU", {1, 2, 1.4293511, 1.7558990, 0.7116354},
                     {-2, 5, -1.0872561, -0.4950690, -0.2117590});
  // silu(1) = 0.7310586, silu'(1) = 0.9276705, silu(2) = 1.7615942, silu'(2) = 1.0907842.
  expectScaledPoints("ScaledSwiGLU", {1, 1, 0.7310586, 0.9276705, 0.7310586}, {2, 1, 1.7615942, 1.0907842, 1.7615942});
}

TEST(GoldenValues, ScaledSquaredReluSumsTheGradientOfAScaleOverItsRow) {
  Call call("ScaledSReLU", {2, 4});
  call.inputs = {{{2, 4}, kX}, {{2}, {0.5, 2.0}}};
  EXPECT_EQ(call.forward().outputs[0].values, (Values{0, 0, 0, 0, 0.5, 2, 8, 18}));
  const ReferenceBackward backward = call.backward({{2, 4}, {1, 2, 3, 4, 1, 2, 3, 4}});
  EXPECT_EQ(backward.inputs[0].values, (Values{0, 0, 0, 0, 2, 8, 24, 48}));
  EXPECT_EQ(backward.inputs[1].values, (Values{0, 0.25 + 2 + 12 + 36}));
}

// With limit 1.5: (1.5 tanh(x / 1.5))^2 and 3 t (1 - t^2), in double precision by Python's math.
TEST(GoldenValues, ScaledTanhSquaredReluApproachesTheSquareOfItsLimit) {
  Call call("ScaledTanhSReLU", {2, 4});
  call.attributes.set("tanh_clamp_scale", 1.5);
  call.inputs = {{{2, 4}, kX}, {{2}, {0.5, 2.0}}};
  const Values y = {0.2325834908889426, 0.7641809131238669, 1.7032664142774439, 2.09103564408038};
  EXPECT_TRUE(allClose(call.forward().outputs[0].values, Values{0, 0, 0, 0, 2 * y[0], 2 * y[1], 2 * y[2], 2 * y[3]},
                       kSevenDecimals));
  const ReferenceBackward backward = call.backward({{2, 4}, Values(8, 1.0)});
  EXPECT_TRUE(allClose(backward.inputs[0].values,
                       Values{0, 0, 0, 0, 2 * 0.8648334727810792, 2 * 1.1545466982717538, 2 * 0.6342559094990621,
                              2 * 0.20432803114066947},
                       kSevenDecimals));
  EXPECT_TRUE(allClose(backward.inputs[1].values, Values{0, y[0] + y[1] + y[2] + y[3]}, kSevenDecimals));
}

// [a0 a1 b0 b1 | a2 a3 b2 b3] with blocks of two; activated are 1 and 2, the linear halves are 1 to 4.
TEST(GoldenValues, InterleavedGatesTakeTheirHalvesInTurns) {
  Call call("SwiGLU", {8});
  call.attributes.set("glu_interleave_size", std::int64_t{2});
  call.inputs = {{{8}, {1, 2, 1, 2, 1, 2, 3, 4}}};
  EXPECT_TRUE(allClose(call.forward().outputs[0].values, Values{0.7310586, 2 * 1.7615942, 3 * 0.7310586, 4 * 1.7615942},
                       {.relative = 0.0, .absolute = 2.1e-7}));
  EXPECT_TRUE(allClose(
      call.backward({{4}, Values(4, 1.0)}).inputs[0].values,
      Values{0.9276705, 2 * 1.0907842, 0.7310586, 1.7615942, 3 * 0.9276705, 4 * 1.0907842, 0.7310586, 1.7615942},
      {.relative = 0.0, .absolute = 2.1e-7}));
}

const ReferenceTensor kNormInput = {{4}, {1, 2, 3, 4}};
const ReferenceTensor kNormGradient = {{4}, {0.1, -0.2, 0.3, 0.4}};
const ReferenceTensor kNormWeight = {{4}, {0.5, 1, 1.5, 2}};

TEST(GoldenValues, LayerNorm) {
  Call call("LayerNorm", {4});
  call.inputs = {kNormInput};
  call.parameters = {kNormWeight, {{4}, Values(4, 0.0)}};
  const ReferenceForward forward = call.forward();
  EXPECT_TRUE(
      allClose(forward.outputs[0].values, Values{-0.6708177, -0.4472118, 0.6708177, 2.6832708}, kSevenDecimals));
  EXPECT_TRUE(allClose(forward.residuals[0].values, Values{2.5}, kSevenDecimals));
  EXPECT_TRUE(allClose(forward.residuals[1].values, Values{0.8944236133}, kSevenDecimals));
  const ReferenceBackward backward = call.backward(kNormGradient);
  EXPECT_TRUE(allClose(backward.inputs[0].values, Values{0.1878258, -0.2951608, 0.0268337, 0.0805012}, kSevenDecimals));
  EXPECT_TRUE(
      allClose(backward.parameters[0].values, Values{-0.1341635, 0.0894424, 0.1341635, 0.5366542}, kSevenDecimals));
  EXPECT_TRUE(allClose(backward.parameters[1].values, kNormGradient.values, kSevenDecimals));
}

TEST(GoldenValues, RmsNorm) {
  Call call("RMSNorm", {4});
  call.inputs = {kNormInput};
  call.parameters = {kNormWeight};
  const ReferenceForward forward = call.forward();
  EXPECT_TRUE(allClose(forward.outputs[0].values, Values{0.1825741, 0.7302963, 1.6431666, 2.9211850}, kSevenDecimals));
  EXPECT_TRUE(allClose(forward.residuals[0].values, Values{0.3651481282}, kSevenDecimals));
  const ReferenceBackward backward = call.backward(kNormGradient);
  EXPECT_TRUE(
      allClose(backward.inputs[0].values, Values{-0.0328633, -0.1752710, 0.0109546, 0.0876358}, kSevenDecimals));
  EXPECT_TRUE(
      allClose(backward.parameters[0].values, Values{0.0365148, -0.1460593, 0.3286333, 0.5842370}, kSevenDecimals));
}

// The third gradient is r (0.3 - 3 * 2.2 / 30.000001) = 0.01460594.
TEST(GoldenValues, L2Normalization) {
  Call call("L2Normalization", {4});
  call.inputs = {kNormInput};
  const ReferenceForward forward = call.forward();
  EXPECT_TRUE(allClose(forward.outputs[0].values, Values{0.1825742, 0.3651484, 0.5477225, 0.7302967}, kSevenDecimals));
  const ReferenceBackward backward = call.backward(kNormGradient);
  EXPECT_TRUE(allClose(backward.inputs[0].values, Values{0.0048686, -0.0632924, 0.0146059, 0.0194746}, kSevenDecimals));
}

// A zero-centered weight w is the weight w + 1.
TEST(GoldenValues, ZeroCenteredGammaIsTheWeightLessOne) {
  for (const char* name : {"LayerNorm", "RMSNorm"}) {
    Call plain(name, {4});
    plain.inputs = {kNormInput};
    plain.parameters = {kNormWeight, {{4}, {1, 2, 3, 4}}};
    Call centered = plain;
    centered.attributes.set("zero_centered_gamma", true);
    for (double& value : centered.parameters[0].values) value -= 1.0;
    EXPECT_TRUE(allClose(centered.forward().outputs[0].values, plain.forward().outputs[0].values, kSevenDecimals));
    EXPECT_TRUE(allClose(centered.backward(kNormGradient).inputs[0].values,
                         plain.backward(kNormGradient).inputs[0].values, kSevenDecimals));
  }
}

// W = [[1, 2, 3], [4, 5, 6]]: y, dx and dW computed by hand.
TEST(GoldenValues, BasicLinearMultipliesByTheTransposedWeight) {
  Call call("BasicLinear", {2, 3});
  call.inputs = {{{2, 3}, {1, 0, -1, 2, 1, 0}}};
  call.parameters = {{{2, 3}, {1, 2, 3, 4, 5, 6}}};
  EXPECT_EQ(call.forward().outputs[0].values, (Values{-2, -2, 4, 13}));
  const ReferenceBackward backward = call.backward({{2, 2}, {1, 0, 10, 1}});
  EXPECT_EQ(backward.inputs[0].values, (Values{1, 2, 3, 14, 25, 36}));
  EXPECT_EQ(backward.parameters[0].values, (Values{21, 10, -1, 2, 1, 0}));
}

TEST(GoldenValues, BiasSumsItsGradientOverAllRows) {
  Call call("Bias", {2, 3});
  call.inputs = {{{2, 3}, {1, 2, 3, 4, 5, 6}}};
  call.parameters = {{{3}, {10, 20, 30}}};
  EXPECT_EQ(call.forward().outputs[0].values, (Values{11, 22, 33, 14, 25, 36}));
  const ReferenceBackward backward = call.backward({{2, 3}, {1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(backward.parameters[0].values, (Values{5, 7, 9}));
}

// The examples of te_ops, section 6.5.
TEST(GoldenValues, ReshapeKeepsTheOrderBothWays) {
  const std::vector<std::array<Shape, 3>> cases = {{{{1, 2, 3, 4}, {2, 12}, {2, 12}}},
                                                   {{{5, 4, 3, 2}, {-1, 6}, {20, 6}}},
                                                   {{{30}, {2, 3, -1}, {2, 3, 5}}},
                                                   {{{6, 7}, {3, -1, 7}, {3, 2, 7}}}};
  for (const auto& [from, wanted, to] : cases) {
    Call call("Reshape", from);
    call.attributes.set("shape", wanted);
    Values values(static_cast<std::size_t>(numElements(from)));
    std::iota(values.begin(), values.end(), 0.5);
    call.inputs = {{from, values}};
    EXPECT_EQ(call.forward().outputs[0].shape, to);
    EXPECT_EQ(call.forward().outputs[0].values, values);
    const ReferenceBackward backward = call.backward({to, values});
    EXPECT_EQ(backward.inputs[0].shape, from);
    EXPECT_EQ(backward.inputs[0].values, values);
  }
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The limits of x sigmoid(k x) and of its kin, where the formulas multiply infinity by zero.
TEST(GoldenValues, ActivationsReachTheirLimitsAtInfinity) {
  for (const char* name : {"SiLU", "GELU", "QGELU", "ReLU"}) {
    SCOPED_TRACE(name);
    Call call(name, {3});
    call.inputs = {{{3}, {-kInfinity, kInfinity, std::nan("")}}};
    const Values y = call.forward().outputs[0].values;
    EXPECT_EQ((Values{y[0], y[1]}), (Values{0.0, kInfinity}));
    EXPECT_TRUE(std::isnan(y[2]));
    const Values dx = call.backward({{3}, {2.0, 2.0, 2.0}}).inputs[0].values;
    EXPECT_EQ((Values{dx[0], dx[1]}), (Values{0.0, 2.0}));
    EXPECT_TRUE(std::isnan(dx[2]));
  }
}

TEST(GoldenValues, GatesReachTheirLimitsAtInfinity) {
  for (const char* name : {"SwiGLU", "GEGLU", "QGEGLU", "ReGLU"}) {
    SCOPED_TRACE(name);
    Call call(name, {4});
    call.inputs = {{{4}, {-kInfinity, kInfinity, 3.0, 3.0}}};
    EXPECT_EQ(call.forward().outputs[0].values, (Values{0.0, kInfinity}));
    EXPECT_EQ(call.backward({{2}, {2.0, 2.0}}).inputs[0].values, (Values{0.0, 6.0, 0.0, kInfinity}));
  }
}

TEST(GoldenValues, ClampedSwigluIsFlatAtBothEnds) {
  Call call("ClampedSwiGLU", {4});
  call.inputs = {{{4}, {-kInfinity, kInfinity, 3.0, 3.0}}};
  const Values y = call.forward().outputs[0].values;
  EXPECT_EQ(y[0], 0.0);
  EXPECT_NEAR(y[1], 27.9998125, 5.1e-7);  // 7 sigmoid(1.702 * 7) (3 + 1); appendix C has 13.9999063 for half of it
  const Values dx = call.backward({{2}, {1.0, 1.0}}).inputs[0].values;
  EXPECT_EQ((Values{dx[0], dx[1]}), (Values{0.0, 0.0}));
}

}  // namespace
}  // namespace fuseline::testing
