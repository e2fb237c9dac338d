// Documents without ops are small and have notes of their own.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/live_analysis.h"

#include "ui/session/blank_pipeline.h"

#include <utility>

namespace fuseline::ui {

std::shared_ptr<const Analysis> LiveAnalysis::next(PipelineDocument document, const AnalysisOptions& options,
                                                   std::uint64_t settings) {
  if (document.ops().empty()) return analyzeToShow(document, options);
  return m_analyses.next(std::move(document), options, settings);
}

}  // namespace fuseline::ui
