// Suggestions: edits of a document that were tried, and after which its plan needs less.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/plan_difference.h"
#include "core/plan/analysis.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// The two are never mixed: the first can be followed without a thought.
enum class SuggestionKind { SameResults, ChangesBehavior };
/// "same results", "changes behaviour".
std::string_view kindName(SuggestionKind kind);

/// An edit that may be worth something.
struct Proposal {
  std::string source;  // "missed_fusions": the file of core/plan/suggestions it is from
  std::string node;    // id of an op of the document; empty: it concerns the whole pipeline
  SuggestionKind kind = SuggestionKind::SameResults;
  Repair repair;
  std::string caution;  // further remarks, in sentences; may be empty
  /// It trades time for memory, at a cost outside the model: effects on traffic and launches are not reported.
  bool isTradeForMemory = false;
};

/// Minimum needs of a fused plan, by the minimum-traffic model.
struct PlanNeeds {
  std::int64_t bytesMoved = 0;  // read and written by all steps of a run
  std::int64_t launches = 0;
  std::int64_t savedForBackwardBytes = 0;
  std::int64_t peakBytes = 0;
  std::int64_t flops = 0;
  std::int64_t quantizedFlops = 0;  // part of them in steps that multiply quantized matrices
};
/// Precondition: the analysis has a plan.
PlanNeeds needsOf(const Analysis& analysis);

struct Suggestion {
  Proposal proposal;
  PlanNeeds before;
  PlanNeeds after;
  /// Time that 8-bit GEMMs save beyond the cost of quantization, by the data sheet of an H200: an estimate. 0 unless
  /// such a GPU is planned for.
  double fp8SavedUs = 0.0;
  std::vector<PlanListDifference> plans;

  /// Saving of memory traffic and launches; negative: more is needed.
  Saving saving() const;
};

/// How a search is followed from outside.
struct SuggestionWatch {
  std::stop_token stop = {};
  /// Before each edit is tried: how many were, and how many will be at most. Empty: nobody listens.
  std::function<void(std::size_t tried, std::size_t most)> onTrial = {};
};

/// Tries the proposals of core/plan/suggestions, each separately, and returns those that gain: less traffic or fewer
/// launches, less memory, or more GEMMs in 8 bits. Suggestions that keep results come first, within each kind those
/// with the largest gain. If several that keep results gain more together than the best of them alone, their
/// combination comes before all. An op of a block counts once, independent of the number of instances. `options` are
/// those of the analysis. Takes one analysis per proposal, at most kMostTried and fewer for a graph of more than 500
/// nodes, and some more for the combination; of proposals that lead to the same document the first counts. Empty when
/// stopped, or if the document has errors.
std::vector<Suggestion> suggestions(const PipelineDocument& document, const AnalysisOptions& options = {},
                                    const SuggestionWatch& watch = {});
inline constexpr std::size_t kMostTried = 200;

/// "moves 5.5 MiB less", "1 step fewer", "keeps 2.75 MiB less for backward", ...: gains first, then costs.
std::vector<std::string> effectsOf(const Suggestion& suggestion, const DeviceModel& device = {});

Json toJson(const Suggestion& suggestion, const DeviceModel& device = {});
Json suggestionSchema();

}  // namespace fuseline
