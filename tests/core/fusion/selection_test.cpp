// The chosen set of fusions against every possible set, and the tie-breakers.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/selection.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <algorithm>

namespace fuseline {
namespace {

using Indices = std::vector<std::size_t>;

/// Owns the ops that candidates refer to.
struct Problem {
  std::size_t numNodes = 0;
  std::vector<std::vector<NodeId>> paths;
  std::vector<Gain> gains;

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> result;
    for (std::size_t i = 0; i < paths.size(); ++i) result.push_back({paths[i], gains[i]});
    return result;
  }
  Indices best(const DeviceModel& device = {}) const { return bestSet(candidates(), numNodes, device); }
};

Problem onALine(const std::vector<std::pair<std::vector<NodeId>, Gain>>& fusions) {
  Problem problem{.numNodes = 10};
  for (const auto& [path, gain] : fusions) {
    problem.paths.push_back(path);
    problem.gains.push_back(gain);
  }
  return problem;
}

TEST(BestSet, TakesNothingFromNothing) { EXPECT_TRUE(bestSet({}, 3, {}).empty()); }

TEST(BestSet, PrefersTwoShortFusionsThatGainMoreThanALongOne) {
  const Problem problem = onALine({{{0, 1, 2, 3}, {.bytes = 10}}, {{0, 1}, {.bytes = 6}}, {{2, 3}, {.bytes = 5}}});
  EXPECT_EQ(problem.best(), (Indices{1, 2}));
}

TEST(BestSet, PrefersTheLongOneWhereItGainsMore) {
  const Problem problem = onALine({{{0, 1, 2, 3}, {.bytes = 12}}, {{0, 1}, {.bytes = 6}}, {{2, 3}, {.bytes = 5}}});
  EXPECT_EQ(problem.best(), Indices{0});
}

TEST(BestSet, LeavesOutWhatLoses) { EXPECT_TRUE(onALine({{{0, 1}, {.bytes = -1, .launches = 1}}}).best().empty()); }

TEST(BestSet, OnANeutralDeviceLaunchesOnlyDecideBetweenEqualBytes) {
  EXPECT_EQ(onALine({{{0, 1}, {.bytes = 9, .launches = 1}}, {{1, 2}, {.bytes = 8, .launches = 5}}}).best(), Indices{0});
  EXPECT_EQ(onALine({{{0, 1}, {.bytes = 8, .launches = 1}}, {{1, 2}, {.bytes = 8, .launches = 5}}}).best(), Indices{1});
}

TEST(BestSet, OnAMeasuredDeviceTimeDecides) {
  // 1 byte takes 1 ns there and a launch 10 ns: 9 + 10 against 8 + 50.
  const DeviceModel device{.bandwidthBytesPerSecond = 1e9, .launchSeconds = 10e-9};
  EXPECT_EQ(onALine({{{0, 1}, {.bytes = 9, .launches = 1}}, {{1, 2}, {.bytes = 8, .launches = 5}}}).best(device),
            Indices{1});
}

TEST(BestSet, EqualGainsGoToTheEarlierRule) {
  const Problem problem =
      onALine({{{0, 1}, {.bytes = 4, .priority = 1}}, {{1, 2}, {.bytes = 4, .priority = 4}}, {{2, 3}, {.bytes = 0}}});
  EXPECT_EQ(problem.best(), Indices{1});
}

TEST(BestSet, WhatWasAskedForGoesBeforeAnyGain) {
  EXPECT_EQ(onALine({{{0, 1}, {.bytes = 1000}}, {{1, 2}, {.askedOps = 2, .bytes = -3}}}).best(), Indices{1});
}

TEST(BestSet, TwoBranchesIntoOneOpCompeteForIt) {
  // 0 -> 2 <- 1, and 2 -> 3.
  const Problem problem = onALine({{{0, 2, 3}, {.bytes = 5}}, {{1, 2, 3}, {.bytes = 7}}, {{0, 2}, {.bytes = 6}}});
  EXPECT_EQ(problem.best(), Indices{1});
}

/// Every op is followed by a later one or by none; a candidate follows the ops from any of them for a while.
Problem randomForest() {
  Problem problem{.numNodes = *rc::gen::inRange<std::size_t>(2, 12)};
  const auto numNodes = static_cast<NodeId>(problem.numNodes);
  std::vector<NodeId> next;
  for (NodeId id = 0; id < numNodes; ++id) next.push_back(*rc::gen::inRange(id + 1, numNodes + 1));
  const int numCandidates = *rc::gen::inRange(0, 10);
  for (int i = 0; i < numCandidates; ++i) {
    std::vector<NodeId> path{*rc::gen::inRange(0, numNodes)};
    for (int length = *rc::gen::inRange(1, 5); length > 1; --length)
      if (const NodeId id = next[static_cast<std::size_t>(path.back())]; id < numNodes) path.push_back(id);
    problem.paths.push_back(path);
    problem.gains.push_back({.bytes = *rc::gen::inRange(-3, 10), .launches = *rc::gen::inRange(0, 3)});
  }
  return problem;
}

bool isDisjoint(const Problem& problem, const Indices& indices) {
  std::vector<int> uses(problem.numNodes, 0);
  for (const std::size_t index : indices)
    for (const NodeId id : problem.paths[index]) ++uses[static_cast<std::size_t>(id)];
  return std::ranges::all_of(uses, [](int count) { return count <= 1; });
}

/// Bytes, then launches: the criteria of a neutral device.
std::pair<std::int64_t, std::int64_t> total(const Problem& problem, const Indices& indices) {
  std::pair<std::int64_t, std::int64_t> sum;
  for (const std::size_t index : indices) {
    sum.first += problem.gains[index].bytes;
    sum.second += problem.gains[index].launches;
  }
  return sum;
}

RC_GTEST_PROP(BestSet, NoOtherSetGainsMore, ()) {
  const Problem problem = randomForest();
  const Indices best = problem.best();
  RC_ASSERT(isDisjoint(problem, best));
  for (std::size_t set = 0; set < std::size_t{1} << problem.paths.size(); ++set) {
    Indices indices;
    for (std::size_t i = 0; i < problem.paths.size(); ++i)
      if (set >> i & 1) indices.push_back(i);
    if (isDisjoint(problem, indices)) RC_ASSERT(total(problem, indices) <= total(problem, best));
  }
}

}  // namespace
}  // namespace fuseline
