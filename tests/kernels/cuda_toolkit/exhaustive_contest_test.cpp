// The contest of the algorithm comparison, with artificial times.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/cuda/exhaustive_contest.h"

#include <map>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

using std::chrono::nanoseconds;

/// Candidate i takes durations[i]; its first launch ten times as long. A negative duration fails.
class MadeUpTimer final : public CandidateTimer {
 public:
  explicit MadeUpTimer(std::vector<double> durations) : m_durations(std::move(durations)) {}

  std::optional<double> timeNs(std::size_t candidate) override {
    const double durationNs = m_durations.at(candidate);
    m_spentNs += 100;
    if (durationNs < 0.0) throw std::runtime_error("no such algorithm");
    return m_launches[candidate]++ == 0 ? 10.0 * durationNs : durationNs;
  }
  nanoseconds spent() const override { return nanoseconds(m_spentNs); }

  std::size_t numLaunched() const { return m_launches.size(); }

 private:
  std::vector<double> m_durations;
  std::map<std::size_t, int> m_launches;
  std::int64_t m_spentNs = 0;
};

TEST(ExhaustiveContest, FindsTheFastestWhereverItStands) {
  MadeUpTimer timer({5, 4, -1, 3, 1, 2});
  const Winner winner = fastestOf(6, timer, std::chrono::seconds(1));
  EXPECT_EQ(winner.candidate, 4u);
  EXPECT_EQ(winner.numTimed, 5u);
}

TEST(ExhaustiveContest, EndsWithItsBudget) {
  MadeUpTimer timer(std::vector<double>(100, 1.0));
  const Winner winner = fastestOf(100, timer, nanoseconds(900));
  EXPECT_EQ(winner.numTimed, 3u);
  EXPECT_EQ(timer.numLaunched(), 3u);
}

TEST(ExhaustiveContest, HasNoWinnerWhereAllFail) {
  MadeUpTimer timer({-1, -1});
  EXPECT_EQ(fastestOf(2, timer, std::chrono::seconds(1)).numTimed, 0u);
}

TEST(ExhaustiveContest, TimesEveryCandidateInEveryRound) {
  MadeUpTimer timer({5, 4, 3});
  const auto samplesNs = timeInTurn(std::vector<std::size_t>{2, 0, 2}, timer, 7);
  ASSERT_EQ(samplesNs.size(), 3u);
  for (const auto& each : samplesNs) EXPECT_EQ(each.size(), 7u);
  EXPECT_EQ(samplesNs[1].back(), 5.0);
  EXPECT_EQ(samplesNs[0].back(), samplesNs[2].back());
}

TEST(ExhaustiveContest, LeavesOutRoundsInWhichOneFails) {
  MadeUpTimer timer({5, -1});
  for (const auto& each : timeInTurn(std::vector<std::size_t>{0, 1}, timer, 3)) EXPECT_TRUE(each.empty());
}

}  // namespace
}  // namespace fuseline::cuda
