// Measurement: how often plans are run, in which order, and when the measurement ends.
//
// Every round runs every plan twice, in random order: once without clocks inside (the end-to-end time) and once with
// a clock around every step. Rounds of all plans interleave, so that a slow spell of the machine hits them alike and
// ratios are taken within a round.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/activity_samples.h"
#include "core/runtime/executor.h"
#include "core/runtime/timed_plan.h"

#include <chrono>
#include <functional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

namespace fuseline {

struct MeasurementPolicy {
  /// Runs of each plan before the first round. They also leave no page to be touched for the first time.
  int warmup = 3;
  /// Minimum warm-up time on a device with its own clock, unless there is no warm-up at all: a GPU raises its clocks
  /// only under load.
  std::chrono::duration<double> minimumWarmup{0.1};
  /// Rounds; 0 stops by itself.
  int iterations = 0;
  int minimumRounds = 15;
  int maximumRounds = 1000;
  /// The automatic stop: the 95 % interval of the end-to-end ratio is at most this wide, relative to the ratio.
  double tightInterval = 0.01;
  /// Or this much time was used. A pipeline too slow for minimumRounds stops after three times this budget.
  std::chrono::duration<double> budget{4.0};
  /// Set: fills the caches before every run of a round, outside the timed interval. Later steps find the data that
  /// earlier ones left.
  CacheFiller* cacheFiller = nullptr;
};

/// Times of one plan. The lists have one entry per complete round; those of steps are shorter if a trace failed during
/// the rounds.
struct PlanSamples {
  /// Time of the very first run: pages are touched, code is loaded, weights are packed. 0 if no run preceded the
  /// rounds.
  double firstRunNs = 0.0;
  std::vector<double> endToEndNs;
  std::vector<double> instrumentedNs;
  std::vector<double> launchNs;                      // Executor::launchNs; empty if launches are synchronous
  std::vector<std::vector<double>> stepNs;           // by step, then by round; zeros for views
  ActivitySamples activities;                        // empty if nothing was traced
  std::vector<std::vector<TimelineSpan>> spans;      // by round: time spans of steps, or traced activities
  std::vector<std::vector<TimelineSpan>> launches;   // by round: Executor::launches
  std::vector<std::vector<TimelineSpan>> rankSpans;  // by round: TimedPlan::rankSpans

  /// Timeline of the round with the median instrumented total. Empty if steps are not timed.
  Timeline medianTimeline() const;
  /// Keeps only the end-to-end times.
  void dropSteps();
};

struct Measurement {
  std::vector<PlanSamples> plans;
  int numWarmups = 0;      // of each plan
  bool isPartial = false;  // canceled; incomplete rounds are left out
};

/// stage: "warming up" or "measuring". total is an estimate while the stop is automatic.
using ProgressCallback = std::function<void(std::string_view stage, int done, int total)>;

/// Errors: those of a plan's run.
Result<Measurement> measure(std::span<TimedPlan* const> plans, const MeasurementPolicy& policy,
                            const ProgressCallback& progress = {}, std::stop_token cancel = {});

}  // namespace fuseline
