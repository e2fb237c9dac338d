// The fastest of several algorithms for one GEMM on this device: a contest by timing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fuseline::cuda {

/// Runs candidates. An exception counts as a failure.
class CandidateTimer {
 public:
  virtual ~CandidateTimer() = default;
  /// Runs a candidate and returns its time in nanoseconds; nullopt: it failed, and is excluded.
  virtual std::optional<double> timeNs(std::size_t candidate) = 0;
  /// Host time of the timed launches. It excludes loading a candidate's code: that happens once per process, and the
  /// choice must not depend on it.
  virtual std::chrono::nanoseconds spent() const = 0;
};

struct ContestLimits {
  /// No round begins later than this; zero: there is no contest. Small GEMMs end long before, by their rounds.
  std::chrono::nanoseconds budget = std::chrono::milliseconds{200};
  int numRounds = 9;
};

struct AlgorithmChoice {
  std::size_t candidate = 0;
  double medianNs = 0.0;       // 0: not timed
  double firstMedianNs = 0.0;  // of the library's own first choice, in the same rounds; 0: not timed, or it failed
  int numTimed = 0;
  bool haveAllFailed = false;  // each was tried
};

/// The candidate with the smallest median, each warmed up first and then timed in rounds of random order. Within the
/// noise the library's own first choice wins, then the candidate with the smallest workspace. workspaceBytes: of each
/// candidate, in the library's order. The same timings give the same choice.
AlgorithmChoice chooseByTiming(std::span<const std::uint64_t> workspaceBytes, CandidateTimer& timer,
                               const ContestLimits& limits = {});

}  // namespace fuseline::cuda
