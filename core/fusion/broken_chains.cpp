// Compares broken chains by their op and the op that follows it.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/broken_chains.h"

#include "core/fusion/rule_uses.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::string wantedBy(const Attempt& attempt) {
  const std::vector<ChainStep>& chain = attempt.rule->chain;
  return attempt.stepsMatched < chain.size() ? chain[attempt.stepsMatched].description() : std::string();
}

/// The sentence up to the op that a rule needs; empty: it has another form.
std::string reasonOf(const Attempt& attempt) {
  if (!isDistant(attempt) || !attempt.repairs.empty()) return {};
  const std::string wanted = wantedBy(attempt);
  for (const std::string& end : {fmt::format(", not {}.", wanted), fmt::format("; expected {} next.", wanted)})
    if (attempt.explanation.ends_with(end))
      return attempt.explanation.substr(0, attempt.explanation.size() - end.size());
  return {};
}

}  // namespace

std::vector<std::vector<const Attempt*>> groupedByReason(std::span<const Attempt* const> attempts) {
  std::map<std::pair<std::vector<NodeId>, std::string>, std::size_t> places;
  std::vector<std::vector<const Attempt*>> groups;
  for (const Attempt* attempt : attempts) {
    const std::string reason = reasonOf(*attempt);
    const std::size_t place =
        reason.empty() ? groups.size() : places.try_emplace({attempt->nodes, reason}, groups.size()).first->second;
    if (place == groups.size()) groups.emplace_back();
    groups[place].push_back(attempt);
  }
  return groups;
}

BrokenChains brokenChains(std::span<const Attempt* const> attempts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> byWanted;
  for (const Attempt* attempt : attempts) {
    const std::string wanted = wantedBy(*attempt);
    auto found = std::ranges::find(byWanted, wanted, &std::pair<std::string, std::vector<std::string>>::first);
    if (found == byWanted.end()) found = byWanted.insert(byWanted.end(), {wanted, {}});
    found->second.push_back(attempt->rule->name);
  }
  std::vector<std::string> needs;
  for (const auto& [wanted, rules] : byWanted)
    needs.push_back(fmt::format("{} for {}", wanted, fmt::join(rules, ", ")));
  return {.first = attempts.front(),
          .reason = reasonOf(*attempts.front()),
          .rulesNeeds = fmt::format("{}", fmt::join(needs, "; "))};
}

}  // namespace fuseline
