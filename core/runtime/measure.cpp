// Warm-up, interleaved rounds and the automatic stop.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/measure.h"

#include "core/profile/stats.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <utility>

namespace fuseline {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// The interval is looked at once in a while only, because it costs milliseconds.
constexpr int kRoundsBetweenChecks = 5;
constexpr double kPatience = 3.0;
constexpr int kFewestRounds = 3;
constexpr std::uint64_t kOrderSeed = 7;

/// One complete round of one plan.
struct RoundSample {
  double endToEndNs = 0.0;
  double instrumentedNs = 0.0;
  double launchNs = 0.0;
  std::vector<double> stepNs;
  std::vector<TimelineSpan> spans;  // of steps
  std::vector<TimelineSpan> launches;
  std::vector<TimelineSpan> rankSpans;
  std::vector<DeviceActivity> activities;
};

/// The spans of the rank that ended last.
std::vector<TimelineSpan> spansOfSlowest(const std::vector<TimelineSpan>& rankSpans) {
  const auto endNs = [](const TimelineSpan& span) { return span.startNs + span.durationNs; };
  const int slowest = std::ranges::max_element(rankSpans, {}, endNs)->rank;
  std::vector<TimelineSpan> spans;
  for (TimelineSpan span : rankSpans)
    if (std::exchange(span.rank, 0) == slowest) spans.push_back(span);
  return spans;
}

class Measurer {
 public:
  Measurer(std::span<TimedPlan* const> plans, const MeasurementPolicy& policy, const ProgressCallback& progress,
           std::stop_token cancel)
      : m_plans(plans), m_policy(policy), m_progress(progress), m_cancel(std::move(cancel)) {
    m_measurement.plans.resize(plans.size());
    for (std::size_t i = 0; i < plans.size(); ++i) m_measurement.plans[i].stepNs.resize(plans[i]->plan().steps.size());
  }

  Result<Measurement> run() {
    if (Result<void> warmed = warmUp(); !warmed) return warmed.error();
    keepToOneClock();
    m_start = Clock::now();
    Result<bool> isOver = agree(isEnough());
    while (isOver && !*isOver) {
      if (Result<void> done = round(); !done) return done.error();
      isOver = agree(m_measurement.isPartial || isEnough());
    }
    if (!isOver) return isOver.error();
    return std::move(m_measurement);
  }

 private:
  /// Ranks that are processes end their rounds together.
  Result<bool> agree(bool decision) const { return m_plans.front()->agree(decision); }

  /// A device with its own clock runs once even without warm-ups: the first run is timed with the host's clock.
  Result<void> runFirst() {
    for (std::size_t plan = 0; plan < m_plans.size(); ++plan)
      if (m_plans[plan]->hasDeviceClock())
        if (Result<void> ran = note(m_plans[plan]->run(m_cancel)); !ran) return ran;
    return {};
  }

  Result<void> warmUp() {
    if (m_policy.warmup == 0) return runFirst();
    const Clock::time_point start = Clock::now();
    for (int& done = m_measurement.numWarmups; isCold(done, start) && !m_measurement.isPartial; ++done) {
      report("warming up", done, std::max(m_policy.warmup, done + 1));
      for (std::size_t plan = 0; plan < m_plans.size(); ++plan) {
        if (Result<void> ran = note(m_plans[plan]->run(m_cancel)); !ran) return ran;
        if (done == 0) m_measurement.plans[plan].firstRunNs = m_plans[plan]->runNs();
      }
    }
    return {};
  }

  bool isCold(int numWarmups, Clock::time_point start) const {
    if (numWarmups < m_policy.warmup) return true;
    const bool hasClock = std::ranges::any_of(m_plans, &TimedPlan::hasDeviceClock);
    return hasClock && Clock::now() - start < m_policy.minimumWarmup;
  }

  /// Runs every (plan, mode) pair once in random order, and keeps the round if it is complete.
  Result<void> round() {
    report("measuring", m_rounds, expectedRounds());
    std::vector<RoundSample> samples(m_plans.size());
    std::vector<std::size_t> order = turns();
    std::ranges::shuffle(order, m_random);
    for (const std::size_t turn : order) {
      const std::size_t plan = turn / 2;
      if (m_policy.cacheFiller)
        if (Result<void> filled = m_policy.cacheFiller->fill(); !filled) return filled;
      Result<void> ran = turn % 2 == 0 ? runPlain(plan, samples[plan]) : runInstrumented(plan, samples[plan]);
      if (!ran || m_measurement.isPartial) return ran;
    }
    keepPlain(samples);
    if (keepToOneClock())
      m_stepsSince = m_rounds + 1;
    else
      keepInstrumented(samples);
    ++m_rounds;
    return {};
  }

  /// Plans and rounds are compared step by step, so that all steps are timed by one clock: where a plan's trace was
  /// given up, all are, and the steps of the rounds before are dropped. True where that has happened just now.
  bool keepToOneClock() {
    const auto isWithout = [](const TimedPlan* plan) { return !plan->clockNote().empty(); };
    const auto without = std::ranges::find_if(m_plans, isWithout);
    if (m_hasGivenUpTraces || without == m_plans.end()) return false;
    for (TimedPlan* const plan : m_plans) plan->giveUpTrace((*without)->clockNote());
    for (PlanSamples& plan : m_measurement.plans) plan.dropSteps();
    return m_hasGivenUpTraces = true;
  }

  /// Twice a plan's number for a plain run of it, one more for an instrumented one, where steps are timed.
  std::vector<std::size_t> turns() const {
    std::vector<std::size_t> turns(2 * m_plans.size());
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    std::erase_if(turns, [&](std::size_t turn) { return turn % 2 == 1 && !timesSteps(turn / 2); });
    return turns;
  }

  bool isTraced(std::size_t plan) const { return m_plans[plan]->clock() == StepClock::Trace; }
  bool timesSteps(std::size_t plan) const { return m_plans[plan]->clock() != StepClock::None; }

  Result<void> runPlain(std::size_t plan, RoundSample& sample) {
    Result<RunOutcome> outcome = m_plans[plan]->run(m_cancel);
    sample.endToEndNs = m_plans[plan]->runNs();
    sample.launchNs = m_plans[plan]->launchNs();
    return note(outcome);
  }

  Result<void> runInstrumented(std::size_t plan, RoundSample& sample) {
    sample.stepNs.assign(m_plans[plan]->plan().steps.size(), 0.0);
    const auto observer = [&](std::size_t step, double startNs, double durationNs) {
      sample.stepNs[step] = durationNs;
      sample.spans.push_back({.step = static_cast<int>(step), .startNs = startNs, .durationNs = durationNs});
    };
    Result<RunOutcome> outcome = m_plans[plan]->runObserved(observer, m_cancel);
    sample.instrumentedNs = m_plans[plan]->observedNs();
    sample.activities = m_plans[plan]->activities();
    sample.launches = m_plans[plan]->launches();
    sample.rankSpans = m_plans[plan]->rankSpans();
    if (!sample.rankSpans.empty()) sample.spans = spansOfSlowest(sample.rankSpans);
    return note(outcome);
  }

  Result<void> note(const Result<RunOutcome>& outcome) {
    if (!outcome) return outcome.error();
    const Result<bool> isOver = agree(*outcome == RunOutcome::Cancelled || m_cancel.stop_requested());
    if (!isOver) return isOver.error();
    if (*isOver) m_measurement.isPartial = true;
    return {};
  }

  void keepPlain(const std::vector<RoundSample>& samples) {
    for (std::size_t plan = 0; plan < samples.size(); ++plan) {
      PlanSamples& kept = m_measurement.plans[plan];
      kept.endToEndNs.push_back(samples[plan].endToEndNs);
      if (m_plans[plan]->hasDeviceClock()) kept.launchNs.push_back(samples[plan].launchNs);
    }
  }

  void keepInstrumented(const std::vector<RoundSample>& samples) {
    for (std::size_t plan = 0; plan < samples.size(); ++plan) {
      if (!timesSteps(plan)) continue;
      PlanSamples& kept = m_measurement.plans[plan];
      kept.instrumentedNs.push_back(samples[plan].instrumentedNs);
      kept.spans.push_back(isTraced(plan) ? std::vector<TimelineSpan>() : samples[plan].spans);
      std::ranges::copy(kept.activities.addRound(samples[plan].activities), std::back_inserter(kept.spans.back()));
      kept.launches.push_back(samples[plan].launches);
      kept.rankSpans.push_back(samples[plan].rankSpans);
      for (std::size_t step = 0; step < kept.stepNs.size(); ++step)
        kept.stepNs[step].push_back(samples[plan].stepNs[step]);
    }
  }

  bool isEnough() const {
    if (m_stepsSince > 0 && m_rounds <= m_stepsSince) return false;  // no step is timed yet
    if (m_policy.iterations > 0) return m_rounds >= m_policy.iterations;
    if (m_rounds < std::min(kFewestRounds, m_policy.minimumRounds)) return false;
    const Seconds elapsed = Clock::now() - m_start;
    if (m_rounds < m_policy.minimumRounds) return elapsed > kPatience * m_policy.budget;
    return m_rounds >= m_policy.maximumRounds || elapsed > m_policy.budget || isTight();
  }

  /// Is every plan's ratio to the first one (for a single plan: its own scatter) known well enough?
  bool isTight() const {
    if (m_rounds % kRoundsBetweenChecks != 0) return false;
    const std::vector<double>& first = m_measurement.plans.front().endToEndNs;
    if (m_plans.size() == 1) return isNarrow(compareRounds(first, std::vector<double>(first.size(), first.front())));
    return std::all_of(m_measurement.plans.begin() + 1, m_measurement.plans.end(),
                       [&](const PlanSamples& plan) { return isNarrow(compareRounds(first, plan.endToEndNs)); });
  }

  bool isNarrow(const RatioStats& ratio) const {
    return ratio.high - ratio.low <= m_policy.tightInterval * ratio.median;
  }

  /// How many rounds the budget allows, judging by the rounds so far.
  int expectedRounds() const {
    if (m_policy.iterations > 0) return m_policy.iterations;
    if (m_rounds == 0) return m_policy.minimumRounds;
    const Seconds perRound = (Clock::now() - m_start) / m_rounds;
    const double rounds = m_policy.budget / std::max(perRound, Seconds(1e-9));
    return static_cast<int>(std::clamp(rounds, static_cast<double>(std::max(m_policy.minimumRounds, m_rounds + 1)),
                                       static_cast<double>(std::max(m_policy.maximumRounds, m_rounds + 1))));
  }

  void report(std::string_view stage, int done, int total) const {
    if (m_progress) m_progress(stage, done, total);
  }

  std::span<TimedPlan* const> m_plans;
  const MeasurementPolicy& m_policy;
  const ProgressCallback& m_progress;
  std::stop_token m_cancel;
  std::mt19937_64 m_random{kOrderSeed};
  Clock::time_point m_start;
  int m_rounds = 0;
  int m_stepsSince = 0;  // the first round with steps that are kept
  bool m_hasGivenUpTraces = false;
  Measurement m_measurement;
};

}  // namespace

void PlanSamples::dropSteps() {
  for (std::vector<double>& samples : stepNs) samples.clear();
  instrumentedNs.clear();
  spans.clear();
  launches.clear();
  rankSpans.clear();
  activities = {};
}

Timeline PlanSamples::medianTimeline() const {
  if (spans.empty()) return {};
  std::vector<std::size_t> rounds(spans.size());
  std::iota(rounds.begin(), rounds.end(), std::size_t{0});
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::ranges::nth_element(rounds, middle, {}, [&](std::size_t round) { return instrumentedNs[round]; });
  return {.round = static_cast<int>(*middle),
          .spans = spans[*middle],
          .launches = launches[*middle],
          .rankSpans = rankSpans[*middle]};
}

Result<Measurement> measure(std::span<TimedPlan* const> plans, const MeasurementPolicy& policy,
                            const ProgressCallback& progress, std::stop_token cancel) {
  return Measurer(plans, policy, progress, std::move(cancel)).run();
}

}  // namespace fuseline
