// Contests between algorithms with artificial durations.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/algorithm_choice.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// The clock advances only by the times of the candidates.
class ScriptedTimer : public CandidateTimer {
 public:
  explicit ScriptedTimer(std::vector<double> durationsNs)
      : calls(durationsNs.size(), 0), m_durationsNs(std::move(durationsNs)) {}

  std::optional<double> timeNs(std::size_t candidate) override {
    order.push_back(candidate);
    const double durationNs = m_durationsNs[candidate];
    ++calls[candidate];
    m_spent += nanoseconds(static_cast<std::int64_t>(durationNs));
    return durationOf(candidate, durationNs);
  }
  nanoseconds spent() const override { return m_spent; }

  std::vector<int> calls;
  std::vector<std::size_t> order;

 protected:
  virtual std::optional<double> durationOf(std::size_t, double durationNs) { return durationNs; }

 private:
  std::vector<double> m_durationsNs;
  nanoseconds m_spent{0};
};

AlgorithmChoice choose(CandidateTimer& timer, std::size_t numCandidates, const ContestLimits& limits = {}) {
  return chooseByTiming(std::vector<std::uint64_t>(numCandidates, 0), timer, limits);
}

TEST(AlgorithmChoice, TakesTheFastestAndSaysWhatTheFirstTook) {
  ScriptedTimer timer({1000, 900, 500, 800});
  const AlgorithmChoice choice = choose(timer, 4);
  EXPECT_EQ(choice.candidate, 2u);
  EXPECT_DOUBLE_EQ(choice.medianNs, 500);
  EXPECT_DOUBLE_EQ(choice.firstMedianNs, 1000);
  EXPECT_EQ(choice.numTimed, 4);
}

TEST(AlgorithmChoice, WithoutABudgetTakesTheFirstAndTimesNothing) {
  ScriptedTimer timer({1000, 10});
  const AlgorithmChoice choice = choose(timer, 2, {.budget = nanoseconds{0}});
  EXPECT_EQ(choice.candidate, 0u);
  EXPECT_EQ(choice.medianNs, 0);
  EXPECT_TRUE(timer.order.empty());
}

TEST(AlgorithmChoice, OfOneOrNoneTimesNothing) {
  ScriptedTimer timer({1000});
  EXPECT_EQ(choose(timer, 1).medianNs, 0);
  EXPECT_EQ(choose(timer, 0).candidate, 0u);
  EXPECT_TRUE(timer.order.empty());
}

TEST(AlgorithmChoice, WithinTheNoiseKeepsTheLibrarysFirst) {
  ScriptedTimer timer({1010, 1000, 1005});
  EXPECT_EQ(chooseByTiming(std::vector<std::uint64_t>{64, 0, 0}, timer).candidate, 0u);
}

TEST(AlgorithmChoice, WithinTheNoisePrefersLessWorkspaceAndThenTheOrder) {
  ScriptedTimer timer({2000, 1000, 1010, 1005});
  EXPECT_EQ(chooseByTiming(std::vector<std::uint64_t>{0, 64, 32, 32}, timer).candidate, 2u);
}

TEST(AlgorithmChoice, DropsClearLosersAfterTheFirstRound) {
  ScriptedTimer timer({1000, 2100, 1900});
  choose(timer, 3, {.numRounds = 7});
  EXPECT_EQ(timer.calls, (std::vector{1 + 7, 1 + 1, 1 + 7}));
}

TEST(AlgorithmChoice, DoesNotCountTheWarmUp) {
  class SlowAtFirst final : public ScriptedTimer {
    using ScriptedTimer::ScriptedTimer;
    std::optional<double> durationOf(std::size_t candidate, double durationNs) override {
      return calls[candidate] == 1 ? 1000 * durationNs : durationNs;
    }
  };
  SlowAtFirst timer({1000, 500});
  const AlgorithmChoice choice = choose(timer, 2);
  EXPECT_EQ(choice.candidate, 1u);
  EXPECT_DOUBLE_EQ(choice.medianNs, 500);
}

/// One candidate fails from its n-th call on.
class FailingTimer final : public ScriptedTimer {
 public:
  enum class Failure { Nothing, Exception, NotANumber, Zero };
  FailingTimer(std::vector<double> durationsNs, std::size_t candidate, int call, Failure failure)
      : ScriptedTimer(std::move(durationsNs)), m_candidate(candidate), m_call(call), m_failure(failure) {}

 private:
  std::optional<double> durationOf(std::size_t candidate, double durationNs) override {
    if (candidate != m_candidate || calls[candidate] < m_call) return durationNs;
    if (m_failure == Failure::Exception) throw std::runtime_error("refused");
    if (m_failure == Failure::Nothing) return std::nullopt;
    return m_failure == Failure::Zero ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  }

  std::size_t m_candidate;
  int m_call;
  Failure m_failure;
};

using Failure = FailingTimer::Failure;

TEST(AlgorithmChoice, LeavesOutWhatFailsWheneverItFails) {
  for (const Failure failure : {Failure::Nothing, Failure::Exception, Failure::NotANumber, Failure::Zero})
    for (const int call : {1, 2, 3, 10}) {
      FailingTimer timer({1000, 500, 700}, 1, call, failure);
      EXPECT_EQ(choose(timer, 3).candidate, 2u) << "call " << call;
      EXPECT_EQ(timer.calls[1], call) << "is not asked again";
    }
}

TEST(AlgorithmChoice, SaysThatTheFirstFailed) {
  for (const int call : {1, 4}) {
    FailingTimer timer({1000, 990, 2000}, 0, call, Failure::Exception);
    const AlgorithmChoice choice = choose(timer, 3);
    EXPECT_EQ(choice.candidate, 1u);
    EXPECT_EQ(choice.firstMedianNs, 0);
  }
}

TEST(AlgorithmChoice, SaysThatAllFailed) {
  class Broken final : public ScriptedTimer {
    using ScriptedTimer::ScriptedTimer;
    std::optional<double> durationOf(std::size_t, double) override { throw std::runtime_error("no device"); }
  };
  Broken timer({1000, 500, 700});
  const AlgorithmChoice choice = choose(timer, 3);
  EXPECT_TRUE(choice.haveAllFailed);
  EXPECT_EQ(choice.medianNs, 0);
  EXPECT_FALSE(choose(timer, 1).haveAllFailed) << "one is not tried";
}

TEST(AlgorithmChoice, EndsWithItsBudget) {
  constexpr double kTenMilliseconds = 1e7;
  ScriptedTimer timer(std::vector<double>(16, kTenMilliseconds));
  choose(timer, 16, {.budget = milliseconds{200}, .numRounds = 1000});
  EXPECT_LE(timer.spent(), milliseconds{200 + 10});
  EXPECT_EQ(timer.calls[15], 0) << "the last ones of the library are left out";
}

TEST(AlgorithmChoice, ComparesTwoHoweverLargeTheProduct) {
  ScriptedTimer timer({4e9, 3e9, 1e9});
  const AlgorithmChoice choice = choose(timer, 3);
  EXPECT_EQ(choice.candidate, 1u);
  EXPECT_EQ(timer.calls, (std::vector{2, 2, 0}));
}

TEST(AlgorithmChoice, PlaysItsRoundsInRandomOrder) {
  constexpr std::size_t kCandidates = 4;
  constexpr std::size_t kRounds = 20;
  ScriptedTimer timer({100, 101, 102, 103});
  choose(timer, kCandidates, {.numRounds = static_cast<int>(kRounds)});
  ASSERT_EQ(timer.order.size(), kCandidates * (kRounds + 1));
  std::set<std::vector<std::size_t>> orders;
  for (std::size_t round = 1; round <= kRounds; ++round) {
    const auto begin = timer.order.begin() + static_cast<std::ptrdiff_t>(round * kCandidates);
    orders.emplace(begin, begin + kCandidates);
    EXPECT_EQ(std::set<std::size_t>(begin, begin + kCandidates).size(), kCandidates) << "each once in a round";
  }
  EXPECT_GT(orders.size(), 5u);
}

/// A drifting speed affects all candidates alike, because they are interleaved.
TEST(AlgorithmChoice, IsNotMisledByAGpuThatSlowsDown) {
  class Drifting final : public ScriptedTimer {
    using ScriptedTimer::ScriptedTimer;
    std::optional<double> durationOf(std::size_t, double durationNs) override {
      return durationNs * (1.0 + 0.02 * static_cast<double>(order.size()));
    }
  };
  Drifting timer({1000, 900, 700, 1000});
  EXPECT_EQ(choose(timer, 4).candidate, 2u);
}

TEST(AlgorithmChoice, IsNeverMuchSlowerThanTheBestAndTheSameEveryTime) {
  EXPECT_TRUE(rc::check([] {
    const auto tenths = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 100000)));
    RC_PRE(tenths.size() > 1u);
    std::vector<double> durationsNs;
    for (const int value : tenths) durationsNs.push_back(0.1 * value);
    ScriptedTimer timer(durationsNs);
    ScriptedTimer again(durationsNs);
    const AlgorithmChoice choice = choose(timer, durationsNs.size());
    RC_ASSERT(durationsNs[choice.candidate] <= 1.021 * *std::ranges::min_element(durationsNs));
    RC_ASSERT(choose(again, durationsNs.size()).candidate == choice.candidate);
    RC_ASSERT(again.order == timer.order);
  }));
}

}  // namespace
}  // namespace fuseline::cuda
