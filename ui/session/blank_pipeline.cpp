// A blank pipeline gets one note instead of errors.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/blank_pipeline.h"

#include <QCoreApplication>

#include <algorithm>

namespace fuseline::ui {

namespace {

/// It goes with the first op that is connected.
bool isOfBlank(const PipelineDocument& document, const Diagnostic& problem) {
  const bool isFreeOutput = problem.code == "missing-field" && document.findOutput(problem.node);
  return isFreeOutput || problem.code == "no-outputs" || problem.code == "unused-input";
}

void noteIfBlank(const PipelineDocument& document, std::vector<Diagnostic>& problems) {
  if (!document.ops().empty()) return;
  const auto numRemoved =
      std::erase_if(problems, [&](const Diagnostic& problem) { return isOfBlank(document, problem); });
  if (numRemoved == 0) return;
  const QString sentence =
      QCoreApplication::translate("Fuseline", "No ops yet. Press Tab to find one, or drag one from the palette.");
  problems.push_back(
      {.severity = Severity::Note, .code = "no-outputs", .pointer = "/pipeline", .message = sentence.toStdString()});
}

}  // namespace

std::shared_ptr<const Analysis> analyzeToShow(const PipelineDocument& document, const AnalysisOptions& options) {
  auto analysis = std::make_shared<Analysis>(analyze(document, options));
  noteIfBlank(document, analysis->lowered.diagnostics);
  return analysis;
}

}  // namespace fuseline::ui
