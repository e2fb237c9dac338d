// IncrementalAnalysis: analyzes a document after each edit, and keeps the plan where the edit leaves it as it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace fuseline {

struct KnownSavings;

/// Options for a document: gains that runs measured are those of one pipeline.
using OptionsFor = std::function<AnalysisOptions(const PipelineDocument&)>;

/// One thread at a time.
class IncrementalAnalysis {
 public:
  /// Equal to analyze(document, options). settings: as long as it is the same number, `options` differ in their
  /// measured gains at most. An edit of the view (positions, frames) gives the analysis that was given before. After an
  /// edit of attributes the chains around these ops are fused and planned again, and the rest if their plan changes.
  /// nullptr: it was stopped. The next analysis then has these changes, too.
  std::shared_ptr<const Analysis> next(PipelineDocument document, const AnalysisOptions& options,
                                       std::uint64_t settings, const std::stop_token& stop = {});
  /// The same of the document() after these edits, which apply to it. After edits of attributes only the ops around
  /// these are lowered again, if the rest of the graph does not depend on them.
  std::shared_ptr<const Analysis> after(const std::vector<Edit>& edits, const OptionsFor& optionsFor,
                                        std::uint64_t settings, const std::stop_token& stop = {});

  /// A copy of the savings of fusions, for the choices of the last analysis.
  std::shared_ptr<const KnownSavings> knownSavings() const;
  /// With all edits, whether their analysis was stopped or not.
  const PipelineDocument& document() const { return m_document; }
  /// The last analysis has the plan, the problems and the tensors of the one before it, and differs at most in the
  /// attributes of these ops; nullopt: it may differ anywhere.
  const std::optional<std::set<std::string>>& changedOps() const { return m_changedOps; }
  /// Number of calls in which the whole graph was fused and planned.
  int numComplete() const { return m_numComplete; }

 private:
  struct Surroundings;

  bool isFor(const AnalysisOptions& options, std::uint64_t settings) const;
  std::optional<Surroundings> surroundingsOf(const std::set<std::string>& ops) const;
  std::optional<Analysis> patched(const Surroundings& before, const AnalysisOptions& options);
  bool hasSameChoices() const;
  std::optional<Analysis> analyzed(const AnalysisOptions& options, bool isSimilar, const std::stop_token& stop);
  void addStages(const AnalysisOptions& options, bool isSimilar, const std::stop_token& stop, KnownSavings& known,
                 Analysis& analysis);
  std::shared_ptr<const Analysis> keep(std::optional<Analysis> analysis, const AnalysisOptions& options,
                                       std::uint64_t settings);

  PipelineDocument m_document;
  GainModel m_gains;
  std::uint64_t m_settings = 0;
  std::shared_ptr<const Analysis> m_last;  // of m_document before m_pending; nullptr: none yet
  std::vector<Edit> m_pending;             // edits whose analyses were stopped
  Json m_fusion;                           // of the document of m_last, as the recipe
  Json m_recipe;
  std::size_t m_numGraphProblems = 0;     // diagnostics of m_last before those of its plan
  std::shared_ptr<KnownSavings> m_known;  // of the options of m_last
  std::optional<std::set<std::string>> m_changedOps;
  int m_numComplete = 0;
};

}  // namespace fuseline
