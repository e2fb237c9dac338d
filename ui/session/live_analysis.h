// LiveAnalysis: analyzes the document of a session after each edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/incremental_analysis.h"

#include <cstdint>
#include <memory>

namespace fuseline::ui {

class LiveAnalysis {
 public:
  /// As analyzeToShow(). settings: see IncrementalAnalysis.
  std::shared_ptr<const Analysis> next(PipelineDocument document, const AnalysisOptions& options,
                                       std::uint64_t settings);

 private:
  IncrementalAnalysis m_analyses;
};

}  // namespace fuseline::ui
