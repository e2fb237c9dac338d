// Writes the lines.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/step_tip.h"

#include "core/profile/stats.h"
#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QStringList>

namespace fuseline::ui {

namespace {

QString lineOf(const QString& text) { return QStringLiteral("<br>") + text; }

/// "12.5 GB/s": what was reached, by the model's count of the work.
QString rate(double work, double durationNs, const char* unit) {
  return durationNs <= 0 || work <= 0 ? QString()
                                      : QStringLiteral("%1 %2").arg(work / durationNs, 0, 'g', 3).arg(toQt(unit));
}

}  // namespace

QString stepLines(const StepRecord& step, double durationNs) {
  QString lines;
  const SampleStats stats = summarize(step.samplesNs);
  if (stats.hasSpread())
    lines += lineOf(QCoreApplication::translate("StepTip", "all rounds: %1").arg(formatTiming(stats)));
  QStringList work;
  if (step.bytes > 0) work.append(formatByteCount(step.bytes));
  work.append(rate(static_cast<double>(step.bytes), durationNs, "GB/s"));
  work.append(rate(static_cast<double>(step.flops) / 1e3, durationNs, "TFLOP/s"));
  work.removeAll(QString());
  if (!work.isEmpty()) lines += lineOf(work.join(QStringLiteral(" · ")));
  for (const std::string& way : step.ways) lines += lineOf(toQt(way).toHtmlEscaped());
  for (const ActivityRecord& activity : step.activities)
    lines += lineOf(QStringLiteral("%1 (%2)").arg(toQt(activity.name).toHtmlEscaped(),
                                                  formatDurationNs(summarize(activity.samplesNs).median)));
  if (!step.note.empty()) lines += lineOf(toQt(step.note).toHtmlEscaped());
  return lines;
}

}  // namespace fuseline::ui
