// Says why nothing is planned.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/unplanned.h"

#include "ui/problems/problems_model.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

std::vector<Diagnostic> errorsOf(const Session& session) {
  std::vector<Diagnostic> problems =
      mergedProblems(session.pipeline().problems(), session.plan().analysis()->lowered.diagnostics);
  std::erase_if(problems, [](const Diagnostic& problem) { return problem.severity != Severity::Error; });
  return problems;
}

/// sentence: with a place for "1 error".
QString whileWrong(const Session& session, const QString& sentence) {
  if (session.plan().analysis()->isRunnable()) return QString();
  const auto numErrors = static_cast<qsizetype>(errorsOf(session).size());
  if (numErrors == 0)
    return session.pipeline().document().ops().empty() ? translated("No ops yet.") : translated("No plan yet.");
  return sentence.arg(
      QStringLiteral("<a href=\"problems\">%1</a>").arg(counted(numErrors, translated("error"), translated("errors"))));
}

}  // namespace

QString unplannedText(const Session& session) { return whileWrong(session, translated("Fix %1 to see the plan.")); }

QString unmeasurableText(const Session& session) { return whileWrong(session, translated("Fix %1 to measure.")); }

QString whileUnmeasured(const Session& session, const QString& invitation) {
  return session.runner().isRunning() ? translated("Measuring. Results appear here when the run ends.") : invitation;
}

QString whyNotRunnable(const Session& session) {
  if (session.plan().analysis()->isRunnable()) return QString();
  const std::vector<Diagnostic> errors = errorsOf(session);
  if (errors.empty())
    return session.pipeline().document().ops().empty() ? translated("The pipeline has no ops yet. Add one to run it.")
                                                       : translated("The pipeline has no plan yet.");
  const QString first = translated("The pipeline cannot run: %1").arg(toQt(errors.front().message));
  const auto numOthers = static_cast<qsizetype>(errors.size()) - 1;
  if (numOthers == 0) return first;
  return first + u' ' +
         translated("The Problems pane shows %1 more.")
             .arg(counted(numOthers, translated("error"), translated("errors")));
}

}  // namespace fuseline::ui
