// Says when a run is not of what is shown.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/run_notes.h"

#include "ui/runs/measured_examples.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <QFileInfo>

namespace fuseline::ui {

QString staleText(const LastRun& run) {
  if (run.isStale) return translated("the pipeline has changed: run again");
  const qsizetype numDiffering = run.origin ? run.origin->differingSteps.size() : 0;
  if (numDiffering == 0) return {};
  return translated("the measured plan differs from this one: %1")
      .arg(counted(numDiffering, translated("step differs"), translated("steps differ")));
}

QString originText(const LastRun& run) {
  const QString driver = toQt(run.record.fact("driver"));
  QStringList details = {toQt(run.device), toQt(run.record.fact("architecture")),
                         driver.isEmpty() ? QString() : translated("driver %1").arg(driver)};
  details.removeAll(QString());
  const QString day = localTimeOf(run.record.fact("measured at")).section(u' ', 0, 0);
  return translated("Measured %1on <b>%2</b> (%3), opened from %4")
      .arg(day.isEmpty() ? day : day.toHtmlEscaped() + u' ', toQt(run.record.deviceName()).toHtmlEscaped(),
           details.join(QStringLiteral(", ")).toHtmlEscaped(), QFileInfo(run.origin->file).fileName().toHtmlEscaped());
}

QString overridesText(const RunSummary& summary) {
  QStringList values = {symbolsText(summary.settings)};
  for (const auto& [name, value] : summary.settings.recipeFields)
    values.append(QStringLiteral("%1 = %2").arg(toQt(name), toQt(value)));
  values.removeAll(QString());
  QStringList parts;
  if (!values.isEmpty()) parts.append(translated("with %1").arg(values.join(QStringLiteral(", "))));
  if (summary.hasOtherRules) parts.append(translated("rules %1").arg(toQt(nameOf(summary.settings.rules))));
  for (const std::string& entry : summary.switches.without) parts.append(translated("without %1").arg(toQt(entry)));
  for (const std::string& entry : summary.switches.with) parts.append(translated("with %1").arg(toQt(entry)));
  return parts.join(QStringLiteral(", "));
}

}  // namespace fuseline::ui
