// RunComparison: two runs side by side, and limits on regressions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// A quantity of both runs. Smaller is better, except for a speed-up.
struct MetricChange {
  std::string name;   // for gates: "median", "unfused", "speedup", "peak", "saved", "launches"; for a step its name
  std::string phase;  // of a step; else empty
  std::string unit;   // "ns", "bytes", "x" or ""
  SampleStats base;   // count 0: only the new run has it
  SampleStats next;   // count 0: only the base has it
  RatioStats change;  // next over base

  bool isInBoth() const { return base.count > 0 && next.count > 0; }
};

/// Were both runs interleaved in one measurement?
bool tookTurns(const RunRecord& base, const RunRecord& next);
/// next over base for samples of two runs: per round if the runs were interleaved, else from the medians.
RatioStats changeBetween(const RunRecord& base, const RunRecord& next, std::span<const double> baseSamples,
                         std::span<const double> nextSamples);

/// "+5.0 %", "~+0.4 %" if not statistically significant, "same", "new" or "gone".
std::string changeText(const MetricChange& metric);
/// Nothing: it has not changed, perhaps. A speed-up is better when it grows.
std::optional<bool> hasImproved(const MetricChange& metric);

struct RunComparison {
  /// A difference in the environment: {"device", "NVIDIA H100", "NVIDIA H200"}. Times of two devices cannot be
  /// compared.
  struct Difference {
    std::string what, base, next;
  };
  std::vector<Difference> differences;
  /// Both took turns in one measurement, so ratios are of each round; else of the medians of two measurements.
  bool isPaired = false;
  std::string variant;               // variant with the compared steps: the fused one, if both runs have it
  std::vector<MetricChange> totals;  // end-to-end time, then memory and launches
  std::vector<MetricChange> steps;   // in the new run's order, then the steps that only the base has

  bool isOneDevice() const;
};

/// Steps are the same where their names and passes are. Errors: the runs have no variant in common.
Result<RunComparison> compareRuns(const RunRecord& base, const RunRecord& next);

/// "median>+5%": fails where the new run's median from end to end is more than 5 % above the base's, and not by chance.
/// The names are those of the totals, or "step": any of them. "p50" is "median".
struct Gate {
  std::string text;
  std::string metric;
  bool isAbove = true;   // else below: "speedup<-5%"
  double percent = 0.0;  // with its sign
};

/// Errors (Usage): the unexpected part of the text, and the valid values.
Result<Gate> parseGate(std::string_view text);

struct GateResult {
  Gate gate;
  bool isMet = false;    // nothing has become worse
  std::string sentence;  // with the figures, or with the step that is worst
};

/// Errors: a gate on times of two devices, on a metric that one of the runs does not have, or on fewer rounds than
/// kRoundsForAClaim.
Result<GateResult> check(const Gate& gate, const RunComparison& comparison);

}  // namespace fuseline
