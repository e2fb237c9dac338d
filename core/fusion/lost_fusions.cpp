// Names the chosen fusions, and compares their savings with those of the ones that were not chosen.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/lost_fusions.h"

#include "core/fusion/legality.h"
#include "core/fusion/node_name.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

class LostTexts {
 public:
  LostTexts(const Graph& graph, const FusionOptions& options, const FusionReport& report)
      : m_graph(graph), m_options(options) {
    for (const auto& [list, owner] :
         {std::pair(&report.forward, &m_forward), std::pair(&report.backward, &m_backward)}) {
      owner->assign(graph.nodes().size(), nullptr);
      for (const FusedOperation& entry : *list) {
        const Attempt* const made = entry.isFused() ? attemptBehind(report, entry) : nullptr;
        for (const NodeId id : entry.nodes) (*owner)[static_cast<std::size_t>(id)] = made;
      }
    }
  }

  /// Empty: it lost no ops to fusions of its own pass, among which gains decide.
  std::string of(const Attempt& lost) const {
    const std::vector<const Attempt*> winners = winnersOver(lost);
    const auto isOfPass = [&](const Attempt* winner) { return winner->rule->pass == lost.rule->pass; };
    if (winners.empty() || !std::ranges::all_of(winners, isOfPass)) return {};
    std::vector<std::string> texts;
    for (const Attempt* winner : winners)
      texts.push_back(
          fmt::format("{} ({}), which is {}", winner->rule->name, idsOf(m_graph, winner->nodes), worthOf(*winner)));
    return fmt::format("{} part of {}; this fusion is {}{}.", takenOps(lost), fmt::join(texts, ", and of "),
                       worthOf(lost), tieText(lost, winners));
  }

 private:
  const Attempt* ownerOf(const Attempt& lost, NodeId id) const {
    const bool isBackward = lost.rule->pass == FusionPass::Backward;
    return (isBackward ? m_backward : m_forward)[static_cast<std::size_t>(id)];
  }

  std::vector<const Attempt*> winnersOver(const Attempt& lost) const {
    std::vector<const Attempt*> winners;
    for (const NodeId id : lost.nodes)
      if (const Attempt* const owner = ownerOf(lost, id); owner && std::ranges::count(winners, owner) == 0)
        winners.push_back(owner);
    return winners;
  }

  /// "fc1 is", "fc1 and act are": the ops that others have.
  std::string takenOps(const Attempt& lost) const {
    std::vector<NodeId> taken;
    for (const NodeId id : lost.nodes)
      if (ownerOf(lost, id)) taken.push_back(id);
    return fmt::format("{} {}", idsOf(m_graph, taken), taken.size() == 1 ? "is" : "are");
  }

  /// Why one of two that gain the same was chosen.
  std::string tieText(const Attempt& lost, const std::vector<const Attempt*>& winners) const {
    Gain winning;
    for (const Attempt* winner : winners) winning += decidingGain(*winner);
    const Gain own = decidingGain(lost);
    if (winning.askedOps > own.askedOps) return ", but was not requested by name";
    return winning == own ? ", the same, but it comes later in the rule set or the pipeline" : "";
  }

  Gain decidingGain(const Attempt& attempt) const {
    Gain gain = gainOf(*attempt.saving, m_options.gains.decides ? attempt.measured.get() : nullptr);
    if (isAsked(m_graph, m_options, attempt)) gain.askedOps = static_cast<std::int64_t>(attempt.nodes.size());
    return gain;
  }

  std::string worthOf(const Attempt& attempt) const {
    return gainText(*attempt.saving, attempt.measured.get(), m_options.gains.device);
  }

  const Graph& m_graph;
  const FusionOptions& m_options;
  std::vector<const Attempt*> m_forward;  // the applied fusion of each op
  std::vector<const Attempt*> m_backward;
};

}  // namespace

void explainLost(const Graph& graph, const FusionOptions& options, FusionReport& report) {
  if (options.book == RuleBook::Te) return;
  const LostTexts texts(graph, options, report);
  for (Attempt& attempt : report.attempts) {
    if (attempt.outcome != Outcome::TakenByAnother || !attempt.saving) continue;
    if (std::string text = texts.of(attempt); !text.empty()) attempt.explanation = std::move(text);
  }
}

}  // namespace fuseline
