// Documents without ops are small and have notes of their own.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/live_analysis.h"

#include "ui/session/blank_pipeline.h"

#include <utility>

namespace fuseline::ui {

std::shared_ptr<const Analysis> LiveAnalysis::next(PipelineDocument document, const OptionsFor& optionsFor,
                                                   std::uint64_t settings, const std::stop_token& stop) {
  const AnalysisOptions options = optionsFor(document);
  return shown(m_analyses.next(std::move(document), options, settings, stop), optionsFor);
}

std::shared_ptr<const Analysis> LiveAnalysis::after(const std::vector<Edit>& edits, const OptionsFor& optionsFor,
                                                    std::uint64_t settings, const std::stop_token& stop) {
  return shown(m_analyses.after(edits, optionsFor, settings, stop), optionsFor);
}

std::optional<std::set<std::string>> LiveAnalysis::changedOps() const {
  return m_analyses.document().ops().empty() ? std::nullopt : m_analyses.changedOps();
}

std::shared_ptr<const Analysis> LiveAnalysis::shown(std::shared_ptr<const Analysis> analysis,
                                                    const OptionsFor& optionsFor) const {
  const PipelineDocument& document = m_analyses.document();
  return analysis && document.ops().empty() ? analyzeToShow(document, optionsFor(document)) : std::move(analysis);
}

}  // namespace fuseline::ui
