// Tries every proposal on a copy of the document, and keeps those after which the plan needs less.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions.h"

#include "core/document/file_format.h"
#include "core/plan/suggestions/sources.h"
#include "core/quant/small_layers.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Source = std::vector<Proposal> (*)(const SuggestionContext&);

#define FUSELINE_CATALOG_ENTRY(name) suggestion_sources::name,
constexpr Source kSources[] = {
#include "core/plan/suggestions/suggestions.inc"
};
#undef FUSELINE_CATALOG_ENTRY

/// Memory that is not worth a word.
constexpr double kLeastMemoryShare = 0.01;

std::vector<Proposal> proposalsFor(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  for (const Source source : kSources)
    for (Proposal& proposal : source(context)) proposals.push_back(std::move(proposal));
  return proposals;
}

bool multipliesQuantized(const Graph& graph, const Step& step) {
  return std::ranges::any_of(step.nodes, [&](NodeId id) {
    const Node& node = graph.node(id);
    return !node.operation->isView && (node.quantizers.input.any() || node.quantizers.weight.any());
  });
}

Gain gainOf(const Suggestion& suggestion) { return gainOf(suggestion.saving()); }

bool isFaster(const Suggestion& suggestion, const DeviceModel& device) {
  return suggestion.fp8SavedUs > 0.0 || exceeds(gainOf(suggestion), {}, device);
}

bool isMuchLess(std::int64_t after, std::int64_t before) {
  return static_cast<double>(before - after) > kLeastMemoryShare * static_cast<double>(before);
}

bool needsLessMemory(const Suggestion& suggestion) {
  return isMuchLess(suggestion.after.savedForBackwardBytes, suggestion.before.savedForBackwardBytes) ||
         isMuchLess(suggestion.after.peakBytes, suggestion.before.peakBytes);
}

/// Quantized although quantizing takes longer than the products save is not.
bool isWorthIt(const Suggestion& suggestion, const DeviceModel& device) {
  if (suggestion.fp8SavedUs < 0.0) return false;
  return isFaster(suggestion, device) || needsLessMemory(suggestion) ||
         suggestion.after.quantizedFlops > suggestion.before.quantizedFlops;
}

class Trials {
 public:
  Trials(const PipelineDocument& document, const AnalysisOptions& options)
      : m_document(document), m_options(options), m_analysis(analyze(document, options)) {}

  std::vector<Suggestion> all(const std::stop_token& stop) {
    std::vector<Suggestion> found;
    if (!m_analysis.isRunnable()) return found;
    for (Proposal& proposal : proposalsFor({m_document, m_options, m_analysis})) {
      if (stop.stop_requested()) return {};
      if (std::optional<Suggestion> suggestion = tried(std::move(proposal))) found.push_back(std::move(*suggestion));
    }
    std::ranges::stable_sort(found, [&](const Suggestion& a, const Suggestion& b) { return comesFirst(a, b); });
    return found;
  }

 private:
  std::optional<Suggestion> tried(Proposal proposal) {
    PipelineDocument changed = m_document;
    if (!changed.apply(proposal.repair.edit) || !isNew(changed)) return std::nullopt;
    const Analysis after = analyze(changed, m_options);
    if (!after.isRunnable()) return std::nullopt;
    Suggestion suggestion{.proposal = std::move(proposal),
                          .before = needsOf(m_analysis),
                          .after = needsOf(after),
                          .fp8SavedUs = fp8SavedUs(after)};
    if (!isWorthIt(suggestion, m_options.gains.device)) return std::nullopt;
    suggestion.plans = planDifference(m_analysis.graph(), m_analysis.report, after.graph(), after.report);
    return suggestion;
  }

  bool isNew(const PipelineDocument& document) {
    return m_tried.size() < kMostTried && m_tried.insert(serialize(document)).second;
  }

  double fp8SavedUs(const Analysis& after) const {
    if (m_options.capability != kEstimatedCapability) return 0.0;
    return estimateFp8(after.graph()) - estimateFp8(m_analysis.graph());
  }

  bool comesFirst(const Suggestion& a, const Suggestion& b) const {
    if (a.proposal.kind != b.proposal.kind) return a.proposal.kind < b.proposal.kind;
    if (a.fp8SavedUs != b.fp8SavedUs) return a.fp8SavedUs > b.fp8SavedUs;
    return exceeds(gainOf(a), gainOf(b), m_options.gains.device);
  }

  const PipelineDocument& m_document;
  const AnalysisOptions& m_options;
  Analysis m_analysis;
  std::set<std::string> m_tried;
};

/// One figure that a suggestion changes: positive is less.
struct Effect {
  std::int64_t saved = 0;
  std::string text;
};

std::string launchesText(std::int64_t saved) {
  const std::int64_t number = std::abs(saved);
  return fmt::format("{} launch{} {}", number, number == 1 ? "" : "es", saved > 0 ? "fewer" : "more");
}

std::vector<Effect> figuresOf(const Suggestion& suggestion) {
  const auto& [proposal, before, after, fp8SavedUs, plans] = suggestion;
  const auto bytes = [](const char* format, std::int64_t saved) {
    const std::string amount = formatBytes(std::abs(saved)) + (saved > 0 ? " less" : " more");
    return Effect{saved, fmt::format(fmt::runtime(format), amount)};
  };
  const Saving saving = suggestion.saving();
  return {bytes("moves {}", saving.bytes),
          {saving.launches, launchesText(saving.launches)},
          bytes("keeps {} for backward", before.savedForBackwardBytes - after.savedForBackwardBytes),
          bytes("peak memory {}", before.peakBytes - after.peakBytes)};
}

std::string flopsText(const char* what, std::int64_t more) {
  return fmt::format("{} {} {}", formatFlops(static_cast<double>(std::abs(more))), more > 0 ? "more" : "less", what);
}

void appendProducts(const Suggestion& suggestion, std::vector<std::string>& texts) {
  const auto& [proposal, before, after, fp8SavedUs, plans] = suggestion;
  if (after.quantizedFlops != before.quantizedFlops)
    texts.push_back(flopsText("in 8 bits or fewer", after.quantizedFlops - before.quantizedFlops));
  if (fp8SavedUs > 0.0)
    texts.push_back(
        fmt::format("8-bit products save about {} more than quantizing takes, by the data sheet of an H200 (an "
                    "estimate)",
                    formatDuration(1e3 * fp8SavedUs)));
  if (after.flops != before.flops) texts.push_back(flopsText("in all", after.flops - before.flops));
}

}  // namespace

std::string_view kindName(SuggestionKind kind) {
  return kind == SuggestionKind::SameResults ? "same results" : "changes behaviour";
}

Saving Suggestion::saving() const {
  if (proposal.isTradeForMemory) return {};
  return {before.bytesMoved - after.bytesMoved, before.launches - after.launches};
}

PlanNeeds needsOf(const Analysis& analysis) {
  const Plan& plan = *analysis.fusedPlan;
  PlanNeeds needs{.launches = plan.numLaunches(),
                  .savedForBackwardBytes = plan.savedForBackwardBytes,
                  .peakBytes = plan.peakBytes()};
  for (const Step& step : plan.steps) {
    if (!step.isLaunched()) continue;
    needs.bytesMoved += step.bytesRead + step.bytesWritten;
    needs.flops += step.flops;
    if (multipliesQuantized(analysis.graph(), step)) needs.quantizedFlops += step.flops;
  }
  return needs;
}

std::vector<Suggestion> suggestions(const PipelineDocument& document, const AnalysisOptions& options,
                                    const std::stop_token& stop) {
  return Trials(document, options).all(stop);
}

std::vector<std::string> effectsOf(const Suggestion& suggestion, const DeviceModel& device) {
  std::vector<std::string> texts;
  const std::optional<double> ns = predictedNs(suggestion.saving(), device);
  if (ns && *ns > 0.0) texts.push_back(fmt::format("predicted to save {}", formatDuration(*ns)));
  std::vector<Effect> figures = figuresOf(suggestion);
  std::ranges::stable_partition(figures, [](const Effect& effect) { return effect.saved > 0; });
  for (const Effect& effect : figures)
    if (effect.saved > 0) texts.push_back(effect.text);
  appendProducts(suggestion, texts);
  for (const Effect& effect : figures)
    if (effect.saved < 0) texts.push_back(effect.text);
  return texts;
}

namespace {

Json toJson(const PlanNeeds& needs) {
  return {{"bytesMoved", needs.bytesMoved},
          {"launches", needs.launches},
          {"savedForBackwardBytes", needs.savedForBackwardBytes},
          {"peakBytes", needs.peakBytes},
          {"flops", needs.flops},
          {"quantizedFlops", needs.quantizedFlops}};
}

Json toJson(const std::vector<PlanListDifference>& plans) {
  Json lists = Json::object();
  for (const PlanListDifference& list : plans)
    for (const PlanLine& line : list.lines)
      if (line.mark != ' ') lists[list.list].push_back(std::string(1, line.mark) + " " + line.text);
  return lists;
}

}  // namespace

Json toJson(const Suggestion& suggestion, const DeviceModel& device) {
  const Proposal& proposal = suggestion.proposal;
  const std::optional<double> ns = predictedNs(suggestion.saving(), device);
  return {{"kind", kindName(proposal.kind)},
          {"label", proposal.repair.label},
          {"op", proposal.node},
          {"source", proposal.source},
          {"effects", effectsOf(suggestion, device)},
          {"caution", proposal.caution},
          {"before", toJson(suggestion.before)},
          {"after", toJson(suggestion.after)},
          {"predictedSavedNs", ns ? Json(*ns) : Json()},
          {"estimatedFp8SavedUs", suggestion.fp8SavedUs},
          {"plans", toJson(suggestion.plans)}};
}

}  // namespace fuseline
