// Finds the worst element of a comparison.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/compare.h"

#include <cmath>
#include <limits>

namespace fuseline::testing {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The error as a multiple of the tolerance; infinite if a NaN meets a number.
double excess(double actual, double expected, Tolerance tolerance) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0.0;
  const double error = std::abs(actual - expected);
  const double allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
  return error <= allowed ? 0.0 : std::isfinite(error) && allowed > 0.0 ? error / allowed : kInfinity;
}

}  // namespace

::testing::AssertionResult allClose(std::span<const double> actual, std::span<const double> expected,
                                    Tolerance tolerance) {
  if (actual.size() != expected.size())
    return ::testing::AssertionFailure() << actual.size() << " values, but " << expected.size() << " are expected";
  std::size_t numWrong = 0;
  std::size_t worst = 0;
  double worstExcess = 0.0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double here = excess(actual[i], expected[i], tolerance);
    if (here > 0.0) ++numWrong;
    if (here <= worstExcess) continue;
    worst = i;
    worstExcess = here;
  }
  if (numWrong == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << numWrong << " of " << actual.size() << " values differ; the worst is ["
                                       << worst << "]: " << actual[worst] << ", expected " << expected[worst]
                                       << ", error " << std::abs(actual[worst] - expected[worst]);
}

}  // namespace fuseline::testing
