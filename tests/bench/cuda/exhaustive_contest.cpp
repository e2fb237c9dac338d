// A candidate that wins the first pass by chance has to win again in the second.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/cuda/exhaustive_contest.h"

#include "core/profile/stats.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

namespace fuseline::cuda {

namespace {

constexpr std::size_t kFinalists = 16;
constexpr int kFinalRounds = 9;
/// The first of these warms up: it loads the candidate's code.
constexpr int kFirstSamples = 3;

std::optional<double> timed(std::size_t candidate, CandidateTimer& timer) try {
  return timer.timeNs(candidate);
} catch (const std::exception&) {
  return std::nullopt;
}

/// The shortest of a few; nothing when one fails.
std::optional<double> firstLook(std::size_t candidate, CandidateTimer& timer) {
  std::optional<double> shortest;
  for (int i = 0; i < kFirstSamples; ++i) {
    const std::optional<double> sampleNs = timed(candidate, timer);
    if (!sampleNs) return std::nullopt;
    shortest = shortest ? std::min(*shortest, *sampleNs) : *sampleNs;
  }
  return shortest;
}

}  // namespace

Winner fastestOf(std::size_t numCandidates, CandidateTimer& timer, std::chrono::nanoseconds budget) {
  std::vector<std::pair<double, std::size_t>> field;
  for (std::size_t i = 0; i < numCandidates && timer.spent() < budget; ++i)
    if (const auto sampleNs = firstLook(i, timer)) field.emplace_back(*sampleNs, i);
  if (field.empty()) return {};
  std::ranges::sort(field);
  std::vector<std::size_t> finalists;
  for (std::size_t i = 0; i < std::min(kFinalists, field.size()); ++i) finalists.push_back(field[i].second);
  const std::vector<std::vector<double>> samplesNs = timeInTurn(finalists, timer, kFinalRounds);
  const auto median = [](const std::vector<double>& each) { return summarize(each).median; };
  const auto best = std::ranges::min_element(samplesNs, {}, median) - samplesNs.begin();
  return {.candidate = finalists[static_cast<std::size_t>(best)], .numTimed = field.size()};
}

std::vector<std::vector<double>> timeInTurn(std::span<const std::size_t> candidates, CandidateTimer& timer,
                                            int numRounds) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random;  // with the default seed: the order is repeatable
  std::vector<std::vector<double>> samplesNs(candidates.size());
  for (int round = 0; round < numRounds; ++round) {
    std::ranges::shuffle(order, random);
    std::vector<std::optional<double>> roundNs(candidates.size());
    for (const std::size_t i : order) roundNs[i] = timed(candidates[i], timer);
    if (!std::ranges::all_of(roundNs, [](const auto& each) { return each.has_value(); })) continue;
    for (std::size_t i = 0; i < candidates.size(); ++i) samplesNs[i].push_back(*roundNs[i]);
  }
  return samplesNs;
}

}  // namespace fuseline::cuda
