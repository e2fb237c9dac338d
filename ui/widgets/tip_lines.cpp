// Counts the lines of tooltips.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/tip_lines.h"

#include <QStringList>

namespace fuseline::ui {

QString cappedTip(const QString& tip, const QString& rest) {
  const QString separator = tip.contains(QStringLiteral("<br>")) ? QStringLiteral("<br>") : QStringLiteral("\n");
  QStringList lines = tip.split(separator, Qt::SkipEmptyParts);
  if (lines.size() > kMostTipLines) {
    const qsizetype numLeft = lines.size() - kMostTipLines + 1;
    lines = lines.first(kMostTipLines - 1) << rest.arg(numLeft);
  }
  return lines.join(separator);
}

}  // namespace fuseline::ui
