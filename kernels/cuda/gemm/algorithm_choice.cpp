// Rounds in random order, so that a GPU that changes its speed is as kind to one candidate as to the other.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/algorithm_choice.h"

#include "core/profile/stats.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <random>
#include <tuple>
#include <vector>

namespace fuseline::cuda {

namespace {

/// A candidate slower than the best by this factor will not catch up.
constexpr double kClearLoss = 2.0;
/// Medians this near count as the same. A guess: not measured on a GPU yet.
constexpr double kNoise = 0.02;
/// Warming up takes 1 / kWarmUpShare of the budget, and at least kFewestEntrants candidates are timed.
constexpr int kWarmUpShare = 3;
constexpr std::size_t kFewestEntrants = 2;

struct Entrant {
  std::size_t candidate = 0;
  std::uint64_t workspaceBytes = 0;
  std::vector<double> samplesNs;
  bool hasFailed = false;

  double medianNs() const { return summarize(samplesNs).median; }
};

class Contest {
 public:
  Contest(CandidateTimer& timer, const ContestLimits& limits) : m_timer(timer), m_limits(limits) {}

  /// In the library's order, so that a short budget leaves out the candidates that the library ranks slowest.
  void warmUp(std::span<const std::uint64_t> workspaceBytes) {
    for (std::size_t i = 0; i < workspaceBytes.size(); ++i) {
      if (m_entrants.size() >= kFewestEntrants && m_timer.spent() * kWarmUpShare >= m_limits.budget) return;
      if (timed(i)) m_entrants.push_back({.candidate = i, .workspaceBytes = workspaceBytes[i]});
    }
  }

  /// The first round is for all; the budget may cut a later one short.
  void playRounds() {
    for (int round = 0; round < m_limits.numRounds && !m_entrants.empty(); ++round) {
      if (round > 0 && isOver()) return;
      playRound(round == 0);
      dropLosers();
    }
  }

  AlgorithmChoice decide() const {
    if (m_entrants.empty()) return {.haveAllFailed = true};
    const double limitNs = bestNs() * (1.0 + kNoise);
    const Entrant* chosen = nullptr;
    for (const Entrant& entrant : m_entrants)
      if (entrant.medianNs() <= limitNs && (!chosen || rank(entrant) < rank(*chosen))) chosen = &entrant;
    return {.candidate = chosen->candidate,
            .medianNs = chosen->medianNs(),
            .firstMedianNs = m_firstMedianNs,
            .numTimed = m_numTimed};
  }

 private:
  static std::tuple<bool, std::uint64_t, std::size_t> rank(const Entrant& entrant) {
    return {entrant.candidate != 0, entrant.workspaceBytes, entrant.candidate};
  }

  bool isOver() const { return m_timer.spent() >= m_limits.budget; }

  std::optional<double> timed(std::size_t candidate) {
    try {
      const std::optional<double> durationNs = m_timer.timeNs(candidate);
      return durationNs && std::isfinite(*durationNs) && *durationNs > 0.0 ? durationNs : std::nullopt;
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  void playRound(bool isForAll) {
    std::shuffle(m_entrants.begin(), m_entrants.end(), m_random);
    for (Entrant& entrant : m_entrants) {
      if (!isForAll && isOver()) break;
      const std::optional<double> durationNs = timed(entrant.candidate);
      if (durationNs) entrant.samplesNs.push_back(*durationNs);
      entrant.hasFailed = !durationNs;
      if (entrant.hasFailed && entrant.candidate == 0) m_firstMedianNs = 0.0;
    }
    std::erase_if(m_entrants, [](const Entrant& entrant) { return entrant.hasFailed; });
    m_numTimed = std::max(m_numTimed, static_cast<int>(m_entrants.size()));
  }

  double bestNs() const {
    double best = m_entrants.front().medianNs();
    for (const Entrant& entrant : m_entrants) best = std::min(best, entrant.medianNs());
    return best;
  }

  void dropLosers() {
    if (m_entrants.empty()) return;
    for (const Entrant& entrant : m_entrants)
      if (entrant.candidate == 0) m_firstMedianNs = entrant.medianNs();
    const double limitNs = bestNs() * kClearLoss;
    std::erase_if(m_entrants, [&](const Entrant& entrant) { return entrant.medianNs() > limitNs; });
  }

  CandidateTimer& m_timer;
  ContestLimits m_limits;
  std::vector<Entrant> m_entrants;
  double m_firstMedianNs = 0.0;
  int m_numTimed = 0;
  std::mt19937 m_random;  // with the default seed: a choice is repeatable
};

}  // namespace

AlgorithmChoice chooseByTiming(std::span<const std::uint64_t> workspaceBytes, CandidateTimer& timer,
                               const ContestLimits& limits) {
  if (workspaceBytes.size() < kFewestEntrants || limits.budget <= limits.budget.zero()) return {};
  Contest contest(timer, limits);
  contest.warmUp(workspaceBytes);
  contest.playRounds();
  return contest.decide();
}

}  // namespace fuseline::cuda
