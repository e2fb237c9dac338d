// Tries every proposal on a copy of the document, and keeps those that reduce the plan's needs.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions.h"

#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/plan/suggestions/sources.h"
#include "core/quant/apply_recipe.h"
#include "core/quant/small_layers.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
/// How many suggestions are tried together: each takes an analysis.
constexpr std::size_t kMostCombined = 40;
/// An analysis takes as long as the graph is large: of 500 nodes on there are fewer trials, but never fewer than these.
constexpr std::size_t kMostTriedNodes = 100'000;
constexpr std::size_t kLeastTried = 20;

std::size_t mostTried(const Graph& graph) {
  const std::size_t numNodes = std::max<std::size_t>(graph.nodes().size(), 1);
  return std::clamp(kMostTriedNodes / numNodes, kLeastTried, kMostTried);
}

std::vector<Proposal> proposalsFor(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  for (const Source source : kSources)
    for (Proposal& proposal : source(context)) proposals.push_back(std::move(proposal));
  return proposals;
}

/// The first of every source before the second of any, so that each source is heard where not all can be tried.
void takeTurns(std::vector<Proposal>& proposals) {
  std::map<std::string, int> numSeen;
  std::vector<std::pair<int, Proposal>> turns;
  for (Proposal& each : proposals) {
    const int turn = numSeen[each.source]++;
    turns.emplace_back(turn, std::move(each));
  }
  std::ranges::stable_sort(turns, {}, &std::pair<int, Proposal>::first);
  std::ranges::transform(turns, proposals.begin(), [](auto& turn) { return std::move(turn.second); });
}

bool multipliesQuantized(const Graph& graph, const Step& step) {
  const bool isBackward = step.phase == Phase::Backward;
  return std::ranges::any_of(step.nodes, [&](NodeId id) { return multipliesCodes(graph.node(id), isBackward); });
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

/// A quantized layer is not worth it if quantizing takes longer than the GEMMs save.
bool isWorthIt(const Suggestion& suggestion, const DeviceModel& device) {
  if (suggestion.fp8SavedUs < 0.0) return false;
  return isFaster(suggestion, device) || needsLessMemory(suggestion) ||
         suggestion.after.quantizedFlops > suggestion.before.quantizedFlops;
}

bool comesFirst(const Suggestion& a, const Suggestion& b, const DeviceModel& device) {
  if (a.proposal.kind != b.proposal.kind) return a.proposal.kind < b.proposal.kind;
  if (a.fp8SavedUs != b.fp8SavedUs) return a.fp8SavedUs > b.fp8SavedUs;
  return exceeds(gainOf(a), gainOf(b), device);
}

/// A document that is improved step by step, and the applied edits.
struct Improved {
  PipelineDocument document;
  Analysis analysis;
  std::vector<Proposal> applied = {};
};

/// "Do 3 of these together: Remove a, which does nothing; Move s behind fc; ..."
std::string labelOf(const std::vector<Proposal>& applied) {
  constexpr std::size_t kMostNamed = 3;
  std::string label = fmt::format("Do {} of these together: ", applied.size());
  for (std::size_t i = 0; i < std::min(applied.size(), kMostNamed); ++i)
    label += (i > 0 ? "; " : "") + applied[i].repair.label;
  return applied.size() > kMostNamed ? label + fmt::format("; and {} more", applied.size() - kMostNamed) : label;
}

/// Each once.
std::string cautionOf(const std::vector<Proposal>& applied) {
  std::vector<std::string> cautions;
  for (const Proposal& each : applied)
    if (!each.caution.empty() && std::ranges::count(cautions, each.caution) == 0) cautions.push_back(each.caution);
  return fmt::format("{}", fmt::join(cautions, " "));
}

Proposal together(std::vector<Proposal> applied) {
  EditGroup group{.label = labelOf(applied)};
  for (Proposal& each : applied) group.edits.push_back(each.repair.edit);
  const std::string caution = cautionOf(applied);
  return {.source = "combination", .node = {}, .repair = {group.label, std::move(group)}, .caution = caution};
}

class Trials {
 public:
  Trials(const PipelineDocument& document, const AnalysisOptions& options)
      : m_document(document),
        m_options(options),
        m_analysis(analyze(document, options)),
        m_mostTried(mostTried(m_analysis.graph())) {}

  std::vector<Suggestion> all(const SuggestionWatch& watch) {
    std::vector<Suggestion> found;
    if (!m_analysis.isRunnable()) return found;
    std::vector<Proposal> proposals = proposalsFor({m_document, m_options, m_analysis});
    if (proposals.size() > m_mostTried) takeTurns(proposals);
    for (Proposal& proposal : proposals) {
      if (watch.stop.stop_requested()) return {};
      if (watch.onTrial) watch.onTrial(m_tried.size(), std::min(proposals.size(), m_mostTried));
      if (std::optional<Suggestion> suggestion = tried(std::move(proposal))) found.push_back(std::move(*suggestion));
    }
    std::ranges::stable_sort(found, [&](const auto& a, const auto& b) { return comesFirst(a, b, device()); });
    if (std::optional<Suggestion> combination = combined(found, watch.stop))
      found.insert(found.begin(), std::move(*combination));
    return watch.stop.stop_requested() ? std::vector<Suggestion>() : found;
  }

 private:
  const DeviceModel& device() const { return m_options.gains.device; }

  std::optional<Suggestion> tried(Proposal proposal) {
    PipelineDocument changed = m_document;
    if (!applyEdit(changed, proposal.repair.edit) || !isNew(changed)) return std::nullopt;
    return comparedWithNow(std::move(proposal), analyze(changed, m_options));
  }

  std::optional<Suggestion> comparedWithNow(Proposal proposal, const Analysis& after) const {
    if (!after.isRunnable()) return std::nullopt;
    Suggestion suggestion{.proposal = std::move(proposal),
                          .before = needsOf(m_analysis),
                          .after = needsOf(after),
                          .fp8SavedUs = fp8SavedUs(after)};
    if (!isWorthIt(suggestion, device())) return std::nullopt;
    suggestion.plans = planDifference(m_analysis.graph(), m_analysis.report, after.graph(), after.report);
    return suggestion;
  }

  bool isNew(const PipelineDocument& document) {
    return m_tried.size() < m_mostTried && m_tried.insert(serialize(document)).second;
  }

  double fp8SavedUs(const Analysis& after) const {
    if (m_options.capability != kEstimatedCapability) return 0.0;
    return estimateFp8(after.graph()) - estimateFp8(m_analysis.graph());
  }

  // ---- several at once

  /// Combines the suggestions that keep results: applies them one after the other while the plan's needs decrease, the
  /// best first. Nothing: the combination gains no more than the best one alone. `found` is in order.
  std::optional<Suggestion> combined(const std::vector<Suggestion>& found, const std::stop_token& stop) const {
    std::vector<const Suggestion*> candidates;
    for (const Suggestion& each : found)
      if (each.proposal.kind == SuggestionKind::SameResults && !each.proposal.isTradeForMemory)
        candidates.push_back(&each);
    candidates.resize(std::min({candidates.size(), kMostCombined, m_mostTried}));
    Improved improved{m_document, m_analysis};
    for (const Suggestion* each : candidates) {
      if (stop.stop_requested()) return std::nullopt;
      improve(improved, *each);
    }
    if (improved.applied.size() < 2) return std::nullopt;
    std::optional<Suggestion> all = comparedWithNow(together(std::move(improved.applied)), improved.analysis);
    return all && exceeds(gainOf(*all), gainOf(*candidates.front()), device()) ? all : std::nullopt;
  }

  /// Edits contain list indices, so the proposals are computed again for the current document.
  void improve(Improved& improved, const Suggestion& suggestion) const {
    std::vector<Proposal> proposals = proposalsFor({improved.document, m_options, improved.analysis});
    const auto isSame = [&](const Proposal& each) {
      return each.source == suggestion.proposal.source && each.repair.label == suggestion.proposal.repair.label;
    };
    const auto again = std::ranges::find_if(proposals, isSame);
    PipelineDocument changed = improved.document;
    if (again == proposals.end() || !applyEdit(changed, again->repair.edit)) return;
    Analysis analysis = analyze(changed, m_options);
    if (!analysis.isRunnable() || !isLess(needsOf(analysis), needsOf(improved.analysis))) return;
    improved.document = std::move(changed);
    improved.analysis = std::move(analysis);
    improved.applied.push_back(std::move(*again));
  }

  bool isLess(const PlanNeeds& after, const PlanNeeds& before) const {
    const Saving saving{before.bytesMoved - after.bytesMoved, before.launches - after.launches};
    return exceeds(gainOf(saving), {}, device());
  }

  const PipelineDocument& m_document;
  const AnalysisOptions& m_options;
  Analysis m_analysis;
  std::size_t m_mostTried;
  std::set<std::string> m_tried;
};

/// One figure that a suggestion changes: positive is less.
struct Effect {
  std::int64_t saved = 0;
  std::string text;
};

std::string stepsText(std::int64_t saved) {
  const std::int64_t number = std::abs(saved);
  return fmt::format("{} step{} {}", number, number == 1 ? "" : "s", saved > 0 ? "fewer" : "more");
}

std::vector<Effect> figuresOf(const Suggestion& suggestion) {
  const auto& [proposal, before, after, fp8SavedUs, plans] = suggestion;
  const auto bytes = [](const char* format, std::int64_t saved) {
    const std::string amount = formatBytes(std::abs(saved)) + (saved > 0 ? " less" : " more");
    return Effect{saved, fmt::format(fmt::runtime(format), amount)};
  };
  const Saving saving = suggestion.saving();
  return {bytes("moves {}", saving.bytes),
          {saving.launches, stepsText(saving.launches)},
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
        fmt::format("8-bit GEMMs save about {} more than quantizing costs (estimate from the data sheet of an H200)",
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
                                    const SuggestionWatch& watch) {
  return Trials(document, options).all(watch);
}

std::vector<std::string> effectsOf(const Suggestion& suggestion, const DeviceModel& device) {
  std::vector<std::string> texts;
  const std::optional<double> ns = predictedNs(suggestion.saving(), device);
  if (ns && *ns > 0.0) texts.push_back(fmt::format("predicted to save {}", formatDuration(*ns)));
  std::vector<Effect> figures = figuresOf(suggestion);
  std::stable_partition(figures.begin(), figures.end(), [](const Effect& effect) { return effect.saved > 0; });
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
          {"warning", proposal.caution},
          {"before", toJson(suggestion.before)},
          {"after", toJson(suggestion.after)},
          {"predictedSavedNs", ns ? Json(*ns) : Json()},
          {"estimatedFp8SavedUs", suggestion.fp8SavedUs},
          {"plans", toJson(suggestion.plans)}};
}

Json suggestionSchema() {
  Json needs =
      schema::object({{"bytesMoved", schema::integer("Minimum memory traffic of all steps.")},
                      {"launches", schema::integer("Steps of the plan; a device may launch several kernels for one.")},
                      {"savedForBackwardBytes", schema::integer("Bytes kept for backward.")},
                      {"peakBytes", schema::integer("Peak memory of the plan.")},
                      {"flops", schema::integer("Floating-point operations of all steps.")},
                      {"quantizedFlops", schema::integer("FLOP of GEMMs with quantized operands.")}});
  Json plans = schema::mapOf(schema::texts());
  plans["description"] =
      "Differences of the lists forward, backward and fusedQuantizations: removed (-) and added (+).";
  return schema::object(
      {{"kind", schema::choice({"same results", "changes behaviour"})},
       {"label", schema::text("Description of the edit.")},
       {"op", schema::text("Op of the edit; empty: the whole pipeline.")},
       {"source", schema::text("Source of the suggestion.")},
       {"effects", schema::texts("Savings and costs of the edit, by the model.")},
       {"warning", schema::text("Side effect of the edit; empty: none.")},
       {"before", needs},
       {"after", needs},
       {"predictedSavedNs",
        schema::orNull(schema::number("Time saved with the traffic and launches; null: no device was measured."))},
       {"estimatedFp8SavedUs", schema::number("Time saved by 8-bit GEMMs, from the data sheet of an H200.")},
       {"plans", plans}});
}

}  // namespace fuseline
