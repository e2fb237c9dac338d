// Says why nothing is planned.
// SPDX-License-Identifier: Apache-2.0
#include "ui/models/unplanned.h"

#include "ui/models/problems_model.h"
#include "ui/theme/format.h"
#include "ui/translated.h"

#include <algorithm>

namespace fuseline::ui {

QString unplannedText(const Session& session) {
  if (session.analysis()->isRunnable()) return QString();
  const auto problems = mergedProblems(session.fileProblems(), session.analysis()->lowered.diagnostics);
  const auto numErrors = std::ranges::count(problems, Severity::Error, &Diagnostic::severity);
  if (numErrors == 0) return translated("Nothing is planned yet.");
  return translated("Nothing is planned while the pipeline has %1.")
      .arg(counted(numErrors, translated("error"), translated("errors")));
}

}  // namespace fuseline::ui
