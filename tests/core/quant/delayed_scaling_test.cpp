// Delayed scaling against a list of all amaxes there were, by hand, and through files.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/delayed_scaling.h"

#include "core/quant/quantization_scope.h"
#include "core/tensor/safetensors.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using testing::TemporaryFolder;

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

/// Amaxes as a step finds them: mostly numbers, sometimes nothing, seldom infinity.
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

TEST(DelayedScaling, FollowsAListOfAllAmaxes) {
  EXPECT_TRUE(rc::check([] {
    const auto length = *rc::gen::inRange<std::size_t>(1, 7);
    const bool takesMostRecent = *rc::gen::arbitrary<bool>();
    const int margin = *rc::gen::inRange(-3, 4);
    DelayedScalingState state(1, length);
    const DelayedUpdate update{.margin = margin, .takesMostRecent = takesMostRecent, .maxFinites = {448.0f}};
    std::vector<double> amaxes;
    double expected = 1.0;
    const int numSteps = *rc::gen::inRange(0, 30);
    for (int step = 0; step < numSteps; ++step) {
      const float amax = arbitraryAmax();
      state.recordAmax(0, amax / 2.0f);
      state.recordAmax(0, amax);  // the largest of the step counts
      state.update(update);
      if (amax != 0.0f) {
        amaxes.push_back(static_cast<double>(amax));
        expected = naiveScale(amaxes, length, takesMostRecent, margin, expected);
      }
      RC_ASSERT(static_cast<double>(state.scale(0)) == expected);
    }
  }));
}

// TransformerEngine's own test: margin 2, HYBRID, history 8, "max".
TEST(DelayedScaling, HasTheScalesOfTransformerEnginesTest) {
  const Recipe recipe = delayed(8, 2);
  DelayedScalingStore store;
  double xMax = 0;
  double dyMax = 0;
  for (const float value : {1.5f, 0.25f, 3.0f, 2.0f}) {
    store.state(recipe, "fc1", StatePass::Forward, {TensorType::Input, TensorType::Weight}).recordAmax(0, value);
    store.state(recipe, "fc1", StatePass::Backward, {TensorType::GradOutput}).recordAmax(0, 2 * value);
    store.update(recipe, StatePass::Forward);
    store.update(recipe, StatePass::Backward);
    xMax = std::max(xMax, static_cast<double>(value));
    dyMax = std::max(dyMax, 2.0 * static_cast<double>(value));
    const auto& forward = store.state(recipe, "fc1", StatePass::Forward, {TensorType::Input, TensorType::Weight});
    const auto& backward = store.state(recipe, "fc1", StatePass::Backward, {TensorType::GradOutput});
    EXPECT_EQ(forward.scale(0), static_cast<float>(kE4m3Max / xMax / 4));
    EXPECT_EQ(forward.scale(1), 1.0f);  // no amax was recorded
    EXPECT_EQ(backward.scale(0), static_cast<float>(kE5m2Max / dyMax / 4));
  }
}

// Rows after each of the amaxes 5, 7, 9 with a history of 3: row 0 is free, the oldest follows.
TEST(DelayedScaling, RollsItsHistory) {
  DelayedScalingState state(1, 3);
  const DelayedUpdate update{.maxFinites = {448.0f}};
  const std::vector<std::vector<float>> expected = {{0, 0, 5}, {0, 5, 7}, {0, 7, 9}};
  const float amaxes[] = {5, 7, 9};
  for (std::size_t step = 0; step < 3; ++step) {
    state.recordAmax(0, amaxes[step]);
    state.update(update);
    for (std::size_t row = 0; row < 3; ++row) EXPECT_EQ(state.amax(row, 0), expected[step][row]) << step;
  }
}

TEST(DelayedScaling, AnInfiniteAmaxFreezesTheScaleUntilItLeavesTheHistory) {
  DelayedScalingState state(1, 3);
  const DelayedUpdate update{.maxFinites = {448.0f}};
  std::vector<float> scales;
  for (const float amax : {1.0f, INFINITY, 2.0f, 2.0f, 2.0f}) {
    state.recordAmax(0, amax);
    state.update(update);
    scales.push_back(state.scale(0));
  }
  EXPECT_EQ(scales, (std::vector<float>{448, 448, 448, 448, 224}));
}

TEST(DelayedScaling, IgnoresNan) {
  DelayedScalingState state(1, 2);
  state.recordAmax(0, 4.0f);
  state.recordAmax(0, std::nanf(""));
  EXPECT_EQ(state.amax(0, 0), 4.0f);
}

TEST(DelayedScaling, TakesTheAmaxesOfAllRanks) {
  const Recipe recipe = delayed(4);
  DelayedScalingStore store;
  store.state(recipe, "a", StatePass::Forward, {TensorType::Input}).recordAmax(0, 1.0f);
  store.state(recipe, "b", StatePass::Forward, {TensorType::Input}).recordAmax(0, 2.0f);
  int numCalls = 0;
  store.update(recipe, StatePass::Forward, [&](std::span<float> amaxes) {
    ++numCalls;
    EXPECT_EQ(std::vector<float>(amaxes.begin(), amaxes.end()), (std::vector<float>{1, 2}));
    amaxes[0] = 7.0f;
  });
  EXPECT_EQ(numCalls, 1);
  EXPECT_EQ(store.state(recipe, "a", StatePass::Forward, {TensorType::Input}).scale(0), 64.0f);
  EXPECT_EQ(store.state(recipe, "b", StatePass::Forward, {TensorType::Input}).scale(0), 224.0f);
}

TEST(DelayedScaling, ShrinksAndGrowsItsHistoryAtTheEnd) {
  DelayedScalingState state(2, 2);
  state.recordAmax(0, 3.0f);
  state.recordAmax(1, 4.0f);
  state.resizeHistory(4);
  EXPECT_EQ(state.historyLength(), 4u);
  EXPECT_EQ(state.amax(0, 1), 4.0f);
  for (std::size_t row = 1; row < 4; ++row) EXPECT_EQ(state.amax(row, 0), 0.0f);
  state.resizeHistory(1);
  EXPECT_EQ(state.historyLength(), 1u);
  EXPECT_EQ(state.amax(0, 0), 3.0f);
}

DelayedScalingState& inputOf(DelayedScalingStore& store, const Recipe& recipe) {
  return store.state(recipe, "fc1", StatePass::Forward, {TensorType::Input});
}

// A step with another recipe in between, and a change of length, margin or algorithm, lose nothing.
TEST(DelayedScalingStore, KeepsAStateForEachRecipe) {
  DelayedScalingStore store;
  inputOf(store, delayed(4)).recordAmax(0, 2.0f);
  store.update(delayed(4), StatePass::Forward);
  EXPECT_EQ(inputOf(store, delayed(4, 0, "max", "E4M3")).scale(0), 1.0f);  // another format: scales of its own
  EXPECT_EQ(inputOf(store, delayed(4)).scale(0), 224.0f);
  DelayedScalingState& longer = inputOf(store, delayed(9, 1, "most_recent"));
  EXPECT_EQ(longer.scale(0), 224.0f);
  EXPECT_EQ(longer.historyLength(), 9u);
}

TEST(DelayedScalingStore, ComesBackFromAFileBitForBit) {
  EXPECT_TRUE(rc::check([] {
    DelayedScalingStore store;
    const Recipe recipe = delayed(*rc::gen::inRange<std::int64_t>(1, 9));
    const int numSteps = *rc::gen::inRange(1, 6);
    for (int step = 0; step < numSteps; ++step) {
      for (const char* op : {"fc1", "block/fc2"}) {
        store.state(recipe, op, StatePass::Forward, {TensorType::Input, TensorType::Weight})
            .recordAmax(1, arbitraryAmax());
        store.state(recipe, op, StatePass::Backward, {TensorType::GradOutput}).recordAmax(0, arbitraryAmax());
      }
      store.update(recipe, StatePass::Forward);
    }
    const TemporaryFolder folder;
    NamedTensors tensors = store.toTensors();
    tensors.emplace_back("fc1.weight", Tensor::zeros({DType::F32, {2}}));
    RC_ASSERT(writeSafetensors(folder / "s.safetensors", tensors).hasValue());
    const Result<NamedTensors> read = readSafetensors(folder / "s.safetensors");
    RC_ASSERT(read.hasValue());
    const Result<DelayedScalingStore> back = DelayedScalingStore::fromTensors(*read);
    RC_ASSERT(back.hasValue());
    RC_ASSERT(*back == store);
  }));
}

std::string errorOf(NamedTensors tensors) {
  const Result<DelayedScalingStore> store = DelayedScalingStore::fromTensors(tensors);
  return store ? "no error" : store.error().message;
}

TEST(DelayedScalingStore, RefusesBrokenStates) {
  const Tensor two = Tensor::zeros({DType::F32, {2}});
  const Tensor history = Tensor::zeros({DType::F32, {4, 2}});
  const std::string name = "DelayedScaling-HYBRID/fc1/forward/input,weight";
  EXPECT_EQ(errorOf({{name + ".amax_history", history}}),
            "The delayed-scaling state " + name + ": its scale or its amax_history is missing.");
  EXPECT_EQ(errorOf({{name + ".scale", two}, {name + ".amax_history", two}}),
            "The delayed-scaling state " + name +
                ": expected scale [n] f32 and amax_history [length, n] f32, found [2] f32 and [2] f32.");
  EXPECT_EQ(errorOf({{"DelayedScaling-HYBRID/fc1/forward/input.scale", two},
                     {"DelayedScaling-HYBRID/fc1/forward/input.amax_history", history}}),
            "The delayed-scaling state DelayedScaling-HYBRID/fc1/forward/input: it has 2 scales for 1 roles.");
  EXPECT_EQ(errorOf({{"DelayedScaling-HYBRID/fc1/sideways/input.amax_history", history}}),
            "The delayed-scaling state DelayedScaling-HYBRID/fc1/sideways/input: 'sideways' is no pass.");
  EXPECT_EQ(errorOf({{"DelayedScaling-HYBRID/fc1/forward/x.amax_history", history}}),
            "The delayed-scaling state DelayedScaling-HYBRID/fc1/forward/x: 'x' is no role of a tensor.");
}

TEST(QuantizationScope, UpdatesForwardWhenTheOutermostScopeEnds) {
  QuantizationScope scope;
  EXPECT_FALSE(scope.takeFirst());  // outside of any
  scope.enter();
  scope.enter();
  EXPECT_FALSE(scope.exit({.needsGradients = true}));
  EXPECT_TRUE(scope.isActive());
  EXPECT_TRUE(scope.exit({.needsGradients = true}));
  scope.enter();
  EXPECT_FALSE(scope.exit({.needsGradients = false}));
  scope.enter();
  EXPECT_FALSE(scope.exit({.needsGradients = true, .isCapturing = true}));
}

TEST(QuantizationScope, GivesTheFirstPipelineTheBackwardUpdate) {
  QuantizationScope scope;
  scope.enter();
  EXPECT_TRUE(scope.takeFirst());
  scope.enter();  // nested: not a new first
  EXPECT_FALSE(scope.takeFirst());
  EXPECT_FALSE(scope.exit({}));
  EXPECT_FALSE(scope.exit({}));
  scope.enter();
  EXPECT_TRUE(scope.takeFirst());
}

}  // namespace
}  // namespace fuseline
