// Gates on the effects of number formats: their meaning, and when they fail.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/numerics_gate.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// Two results of the fused plan: one exact, one off by so much of every value; and one of the unfused against float32.
NumericsReport off(double fusionError, double floatError) {
  const std::vector<double> ones(4, 1.0);
  return {.errors = {errorOf("y", std::vector(4, 1.0 + floatError), ones, DType::BF16)},
          .fusionErrors = {errorOf("norm:y", ones, ones, DType::BF16),
                           errorOf("act:y", std::vector(4, 1.0 + fusionError), ones, DType::BF16)}};
}

NumericsGateResult checked(const char* gate, const NumericsReport& report) {
  return check(*parseNumericsGate(gate), report);
}

// The tolerance of bf16 is 1.6 %.
TEST(NumericsGate, FailsBeyondTheToleranceOfTheResult) {
  EXPECT_TRUE(checked("error>tolerance", off(0.015, 1.0)).isMet);
  const NumericsGateResult failed = checked("error>tolerance", off(0.032, 0.0));
  EXPECT_FALSE(failed.isMet);
  EXPECT_EQ(failed.sentence, "the largest is 2 times its tolerance, of act:y");
  EXPECT_FALSE(checked("float-error>tolerance", off(0.0, 0.032)).isMet);
}

TEST(NumericsGate, FailsBeyondAPercentage) {
  EXPECT_TRUE(checked("error>2%", off(0.015625, 1.0)).isMet);
  EXPECT_FALSE(checked("error>1.5%", off(0.015625, 1.0)).isMet);
  EXPECT_EQ(checked("error>1.5%", off(0.015625, 1.0)).sentence, "the largest is 1.56 %, of act:y");
  EXPECT_TRUE(checked("error>0%", off(0.0, 1.0)).isMet) << "nothing is above nothing";
}

TEST(NumericsGate, FailsOnANumberThatIsNone) {
  const double nan = std::nan("");
  for (const std::vector<double>& expected : {std::vector{1.0, 1.0}, std::vector{nan, 1.0}}) {
    NumericsReport report = off(0.0, 0.0);
    report.fusionErrors.push_back(errorOf("z", {nan, 1.0}, expected, DType::BF16));
    for (const char* gate : {"error>tolerance", "error>50%"}) {
      EXPECT_FALSE(checked(gate, report).isMet) << gate;
      EXPECT_EQ(checked(gate, report).sentence, "z has NaN, or infinity where a number is expected");
    }
  }
}

TEST(NumericsGate, RefusesWhatIsNoGate) {
  for (const char* text : {"", "error", "error>", "error<1%", "error>1", "error>-1%", "median>+5%", "error>nan%"}) {
    const Result<NumericsGate> gate = parseNumericsGate(text);
    ASSERT_FALSE(gate) << text;
    EXPECT_EQ(gate.error().kind, ErrorKind::Usage);
  }
}

}  // namespace
}  // namespace fuseline
