// LiveAnalysis: analyzes the document of a session after each edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/incremental_analysis.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace fuseline::ui {

class LiveAnalysis {
 public:
  /// As analyzeToShow(). settings: see IncrementalAnalysis.
  std::shared_ptr<const Analysis> next(PipelineDocument document, const OptionsFor& optionsFor, std::uint64_t settings,
                                       const std::stop_token& stop);
  /// The same after edits of the last document.
  std::shared_ptr<const Analysis> after(const std::vector<Edit>& edits, const OptionsFor& optionsFor,
                                        std::uint64_t settings, const std::stop_token& stop);
  /// See IncrementalAnalysis.
  std::optional<std::set<std::string>> changedOps() const;
  std::shared_ptr<const KnownSavings> knownSavings() const { return m_analyses.knownSavings(); }
  const PipelineDocument& document() const { return m_analyses.document(); }

 private:
  std::shared_ptr<const Analysis> shown(std::shared_ptr<const Analysis> analysis, const OptionsFor& optionsFor) const;

  IncrementalAnalysis m_analyses;
};

}  // namespace fuseline::ui
