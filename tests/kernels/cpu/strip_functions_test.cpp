// The vectorized functions against double precision: accuracy over their range, limits, NaN.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_functions.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::cpu {
namespace {

constexpr double kInfinityF64 = std::numeric_limits<double>::infinity();
constexpr double kSqrt2OverPi = 0.79788456080286535588;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double geluInner(double x) { return kSqrt2OverPi * (x + 0.044715 * x * x * x); }
double geluGrad(double x) {
  const double t = std::tanh(geluInner(x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kSqrt2OverPi * (1.0 + 3.0 * 0.044715 * x * x);
}

struct Function {
  Opcode opcode;
  std::function<double(double)> exact;
  double low;
  double high;
};

/// The tests' own definitions (te_ops 1.4), over the range where results are neither tiny nor infinite.
const std::vector<Function> kFunctions = {
    {Opcode::Neg, [](double x) { return -x; }, -50, 50},
    {Opcode::Exp, [](double x) { return std::exp(x); }, -87, 88},
    {Opcode::Log, [](double x) { return std::log(x); }, 1e-30, 1e30},
    {Opcode::Sqrt, [](double x) { return std::sqrt(x); }, 0, 1e6},
    {Opcode::Rsqrt, [](double x) { return 1.0 / std::sqrt(x); }, 1e-6, 1e6},
    {Opcode::Tanh, [](double x) { return std::tanh(x); }, -30, 30},
    {Opcode::Erf, [](double x) { return std::erf(x); }, -10, 10},
    {Opcode::Sigmoid, sigmoid, -60, 60},
    {Opcode::Gelu, [](double x) { return 0.5 * x * (1.0 + std::tanh(geluInner(x))); }, -20, 20},
    {Opcode::GeluGrad, geluGrad, -20, 20},
    {Opcode::ExactGelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, -20, 20},
    {Opcode::ExactGeluGrad,
     [](double x) {
       return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2.0 * std::acos(-1.0));
     },
     -20, 20},
    {Opcode::Silu, [](double x) { return x * sigmoid(x); }, -60, 60},
    {Opcode::SiluGrad, [](double x) { return sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))); }, -60, 60},
};

std::vector<float> sweep(double low, double high) {
  std::vector<float> values;
  constexpr int kSteps = 200001;
  const bool isWide = low > 0.0 && high / low > 1e6;  // then by factors, else by steps
  for (int i = 0; i < kSteps; ++i) {
    const double share = static_cast<double>(i) / (kSteps - 1);
    values.push_back(static_cast<float>(isWide ? low * std::pow(high / low, share) : low + (high - low) * share));
  }
  return values;
}

std::vector<float> apply(Opcode opcode, Precision precision, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  computeFunction(opcode, precision)(y.data(), x.data(), nullptr, x.size());
  return y;
}

class Functions : public ::testing::TestWithParam<Function> {
 protected:
  void expectWithin(Precision precision, double relative, double absolute) const {
    const std::vector<float> x = sweep(GetParam().low, GetParam().high);
    const std::vector<float> y = apply(GetParam().opcode, precision, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = GetParam().exact(static_cast<double>(x[i]));
      ASSERT_NEAR(static_cast<double>(y[i]), exact, relative * std::abs(exact) + absolute) << "at " << x[i];
    }
  }
};

// The tolerance of f32 (te_ops 6.1) with a tenth of its absolute term.
TEST_P(Functions, AreExactToFloat32) { expectWithin(Precision::Full, 1e-6, 1e-6); }

// Half an ulp of bf16 is 2e-3; the reduced functions may use half of it. Derivatives cross zero.
TEST_P(Functions, AreExactToBf16) { expectWithin(Precision::Bf16, 1e-3, 1e-5); }

TEST_P(Functions, KeepNan) {
  // A NaN whose payload has every bit set, and the default one: integer arithmetic on exponents must keep them NaN.
  const std::vector<float> nans(40, std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> others(40, -std::nanf("0x3fffff"));
  for (const Precision precision : {Precision::Full, Precision::Bf16})
    for (const auto& x : {nans, others})
      for (const float y : apply(GetParam().opcode, precision, x)) ASSERT_TRUE(std::isnan(y));
}

INSTANTIATE_TEST_SUITE_P(Opcodes, Functions, ::testing::ValuesIn(kFunctions),
                         [](const auto& test) { return std::string(opcodeName(test.param.opcode)); });

float valueAt(Opcode opcode, double x) { return apply(opcode, Precision::Full, {static_cast<float>(x)}).front(); }

TEST(FunctionLimits, ActivationsOfHugeValuesAreTheirLimits) {
  for (const double huge : {1e4, 1e10, 1e20, 3e38}) {
    EXPECT_EQ(valueAt(Opcode::Gelu, huge), static_cast<float>(huge));
    EXPECT_EQ(valueAt(Opcode::Silu, huge), static_cast<float>(huge));
    EXPECT_NEAR(valueAt(Opcode::Gelu, -huge), 0.0, 1e-10);
    EXPECT_NEAR(valueAt(Opcode::Silu, -huge), 0.0, 1e-10);
    EXPECT_NEAR(valueAt(Opcode::GeluGrad, huge), 1.0, 1e-6);
    EXPECT_NEAR(valueAt(Opcode::GeluGrad, -huge), 0.0, 1e-10);
    EXPECT_NEAR(valueAt(Opcode::SiluGrad, huge), 1.0, 1e-6);
    EXPECT_NEAR(valueAt(Opcode::SiluGrad, -huge), 0.0, 1e-10);
    EXPECT_EQ(valueAt(Opcode::Sigmoid, huge), 1.0F);
    EXPECT_NEAR(valueAt(Opcode::Sigmoid, -huge), 0.0, 1e-30);
    EXPECT_EQ(valueAt(Opcode::Tanh, -huge), -1.0F);
    EXPECT_EQ(valueAt(Opcode::Erf, -huge), -1.0F);
    EXPECT_EQ(valueAt(Opcode::Erf, huge), 1.0F);
  }
}

// Exactly: 1e-33 times an infinite gate would be infinite.
TEST(FunctionLimits, ActivationsOfInfinityAreTheirLimits) {
  for (const Precision precision : {Precision::Full, Precision::Bf16}) {
    for (const Opcode value : {Opcode::Silu, Opcode::Gelu, Opcode::ExactGelu}) {
      const std::vector<float> y = apply(value, precision, {-INFINITY, INFINITY});
      EXPECT_EQ(y, (std::vector<float>{0.0F, INFINITY})) << opcodeName(value);
    }
    for (const Opcode slope : {Opcode::SiluGrad, Opcode::GeluGrad, Opcode::ExactGeluGrad}) {
      const std::vector<float> y = apply(slope, precision, {-INFINITY, INFINITY});
      EXPECT_EQ(y[0], 0.0F) << opcodeName(slope);
      EXPECT_NEAR(y[1], 1.0F, precision == Precision::Full ? 1e-6F : 1e-3F) << opcodeName(slope);
    }
  }
}

TEST(FunctionLimits, ExpAndLogReachTheirEnds) {
  EXPECT_EQ(valueAt(Opcode::Exp, 1000.0), static_cast<float>(kInfinityF64));
  EXPECT_EQ(valueAt(Opcode::Exp, kInfinityF64), static_cast<float>(kInfinityF64));
  EXPECT_EQ(valueAt(Opcode::Exp, -1000.0), 0.0F);
  EXPECT_NEAR(valueAt(Opcode::Exp, -100.0), std::exp(-100.0), 1e-45);  // subnormal
  EXPECT_EQ(valueAt(Opcode::Log, 0.0), static_cast<float>(-kInfinityF64));
  EXPECT_EQ(valueAt(Opcode::Log, kInfinityF64), static_cast<float>(kInfinityF64));
  EXPECT_TRUE(std::isnan(valueAt(Opcode::Log, -1.0)));
}

TEST(FunctionLimits, MaxAndMinPropagateNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Opcode opcode : {Opcode::Max, Opcode::Min}) {
    const float a[] = {nan, 1.0F};
    const float b[] = {1.0F, nan};
    float y[2];
    computeFunction(opcode, Precision::Full)(y, a, b, 2);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  }
}

// te_ops, appendix C.
TEST(FunctionLimits, GoldenValuesOfTheActivations) {
  EXPECT_NEAR(valueAt(Opcode::Gelu, -0.5), -0.1542860, 1e-7);
  EXPECT_NEAR(valueAt(Opcode::Gelu, 2.0), 1.9545977, 3e-7);
  EXPECT_NEAR(valueAt(Opcode::GeluGrad, -1.0), -0.0829641, 1e-7);
  EXPECT_NEAR(valueAt(Opcode::Silu, -3.0), -0.1422776, 1e-7);
  EXPECT_NEAR(valueAt(Opcode::SiluGrad, 1.0), 0.9276705, 1e-7);
}

}  // namespace
}  // namespace fuseline::cpu
