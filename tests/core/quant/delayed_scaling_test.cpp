// Delayed scaling against a list of all earlier amaxes, and against values computed by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/delayed_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

constexpr double kE4m3Max = 448.0;
constexpr double kE5m2Max = 57344.0;

Recipe delayed(std::int64_t length, std::int64_t margin = 0, const std::string& algorithm = "max",
               const std::string& format = "HYBRID") {
  Attributes fields;
  fields.set("amax_history_len", length);
  fields.set("margin", margin);
  fields.set("amax_compute_algo", algorithm);
  fields.set("fp8_format", format);
  return *Recipe::create(*findRecipe("DelayedScaling"), fields);
}

/// Amaxes of a step: usually numbers, sometimes zero, rarely infinity.
float arbitraryAmax() {
  const int kind = *rc::gen::inRange(0, 20);
  if (kind < 3) return 0.0f;
  if (kind == 3) return std::numeric_limits<float>::infinity();
  return std::ldexp(1.0f + static_cast<float>(*rc::gen::inRange(0, 1000)) / 1000.0f, *rc::gen::inRange(-30, 30));
}

/// The window is the last `length` amaxes that were not 0; an infinite one keeps the scale as it was.
double naiveScale(const std::vector<double>& amaxes, std::size_t length, bool takesMostRecent, int margin,
                  double previous) {
  if (amaxes.empty()) return previous;
  const std::size_t first = amaxes.size() > length ? amaxes.size() - length : 0;
  double amax = takesMostRecent ? amaxes.back()
                                : *std::max_element(amaxes.begin() + static_cast<std::ptrdiff_t>(first), amaxes.end());
  if (std::isinf(amax)) return previous;
  return std::min(static_cast<double>(static_cast<float>(std::ldexp(kE4m3Max, -margin) / amax)),
                  static_cast<double>(std::numeric_limits<float>::max()));
}

/// One tensor's state, as it is before the first step.
struct State {
  explicit State(std::size_t length) : history(length, 0.0F) {}

  /// A step that saw this amax.
  void step(float amax, const DelayedUpdate& update = {}) {
    history.front() = amax;
    updateDelayedScaling(scale, history, update);
  }

  float scale = 1.0F;
  std::vector<float> history;
};

TEST(DelayedScaling, FollowsAListOfAllAmaxes) {
  EXPECT_TRUE(rc::check([] {
    const auto length = *rc::gen::inRange<std::size_t>(1, 7);
    const DelayedUpdate update{.margin = *rc::gen::inRange(-3, 4), .takesMostRecent = *rc::gen::arbitrary<bool>()};
    State state(length);
    std::vector<double> amaxes;
    double expected = 1.0;
    const int numSteps = *rc::gen::inRange(0, 30);
    for (int step = 0; step < numSteps; ++step) {
      const float amax = arbitraryAmax();
      state.step(amax, update);
      if (amax != 0.0f) {
        amaxes.push_back(static_cast<double>(amax));
        expected = naiveScale(amaxes, length, update.takesMostRecent, update.margin, expected);
      }
      RC_ASSERT(static_cast<double>(state.scale) == expected);
    }
  }));
}

// TransformerEngine's own test: margin 2, HYBRID, history 8, "max".
TEST(DelayedScaling, HasTheScalesOfTransformerEnginesTest) {
  State x(8);
  State weight(8);
  State dy(8);
  double xMax = 0;
  double dyMax = 0;
  for (const float value : {1.5f, 0.25f, 3.0f, 2.0f}) {
    x.step(value, {.margin = 2});
    weight.step(0.0F, {.margin = 2});
    dy.step(2 * value, {.margin = 2, .maxFinite = 57344.0F});
    xMax = std::max(xMax, static_cast<double>(value));
    dyMax = std::max(dyMax, 2.0 * static_cast<double>(value));
    EXPECT_EQ(x.scale, static_cast<float>(kE4m3Max / xMax / 4));
    EXPECT_EQ(weight.scale, 1.0f);  // no amax was recorded
    EXPECT_EQ(dy.scale, static_cast<float>(kE5m2Max / dyMax / 4));
  }
}

// Rows after each of the amaxes 5, 7, 9 with a history of 3: row 0 is free, the oldest follows.
TEST(DelayedScaling, RollsItsHistory) {
  State state(3);
  const std::vector<std::vector<float>> expected = {{0, 0, 5}, {0, 5, 7}, {0, 7, 9}};
  const float amaxes[] = {5, 7, 9};
  for (std::size_t step = 0; step < 3; ++step) {
    state.step(amaxes[step]);
    EXPECT_EQ(state.history, expected[step]) << step;
  }
}

TEST(DelayedScaling, AnInfiniteAmaxFreezesTheScaleUntilItLeavesTheHistory) {
  State state(3);
  std::vector<float> scales;
  std::vector<int> frozen;
  for (const float amax : {1.0f, INFINITY, 2.0f, 2.0f, 2.0f}) {
    state.step(amax);
    scales.push_back(state.scale);
    frozen.push_back(frozenSteps(state.history));
  }
  EXPECT_EQ(scales, (std::vector<float>{448, 448, 448, 448, 224}));
  EXPECT_EQ(frozen, (std::vector<int>{0, 2, 1, 0, 0}));
}

// A step with another recipe in between, and a change of length, margin or algorithm, lose nothing.
TEST(DelayedScaling, KeepsStatesApartByWhatTheirScalesBelongTo) {
  const std::string plain = stateIdentity(delayed(4));
  EXPECT_EQ(stateIdentity(delayed(9, 1, "most_recent")), plain);
  EXPECT_NE(stateIdentity(delayed(4, 0, "max", "E4M3")), plain);
}

}  // namespace
}  // namespace fuseline
