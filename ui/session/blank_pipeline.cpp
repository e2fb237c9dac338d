// A blank pipeline gets one note instead of errors.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/blank_pipeline.h"

#include "ui/widgets/translated.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

/// It goes with the first op that is connected.
bool isOfBlank(const PipelineDocument& document, const Diagnostic& problem) {
  const bool isFreeOutput = problem.code == "missing-field" && document.findOutput(problem.node);
  return isFreeOutput || problem.code == "no-outputs" || problem.code == "unused-input";
}

}  // namespace

void noteIfBlank(const PipelineDocument& document, std::vector<Diagnostic>& problems) {
  if (!document.ops().empty()) return;
  const auto numRemoved =
      std::erase_if(problems, [&](const Diagnostic& problem) { return isOfBlank(document, problem); });
  if (numRemoved == 0) return;
  problems.push_back(
      {.severity = Severity::Note,
       .code = "no-outputs",
       .pointer = "/pipeline",
       .message = translated("No ops yet. Press Tab to find one, or drag one from the palette.").toStdString()});
}

}  // namespace fuseline::ui
