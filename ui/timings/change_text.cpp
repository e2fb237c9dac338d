// Writes changes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/change_text.h"

#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

/// Changes of ten times or more are shown as a ratio: +107841.1 % is unreadable.
QString percentText(double ratio) {
  constexpr double kLeastRatio = 10.0;
  if (std::isinf(ratio)) return translated("from 0");
  if (ratio >= kLeastRatio) return QStringLiteral("×%1").arg(formatThreeDigits(ratio));
  return QString::asprintf("%+.1f %%", 100.0 * (ratio - 1.0));
}

QString amountText(const MetricChange& change, const ColumnUnit& time) {
  const double difference = change.next.median - change.base.median;
  const QString sign = difference > 0.0 ? QStringLiteral("+") : QString();
  if (change.unit == "ns") return sign + toQt(time.timeOf(difference));
  if (change.unit != "bytes") return sign + QString::number(difference);
  const QString bytes = formatByteCount(static_cast<std::int64_t>(std::abs(difference)));
  return (difference < 0.0 ? QStringLiteral("-") : sign) + bytes;
}

QString figureText(const MetricChange& change, ChangeUnit unit, const ColumnUnit& time) {
  switch (unit) {
    case ChangeUnit::Percent: return percentText(change.change.median);
    case ChangeUnit::Amount: return amountText(change, time);
    case ChangeUnit::Ratio: return QStringLiteral("%1×").arg(change.change.median, 0, 'f', 3);
  }
  return {};
}

QString markOf(const RatioStats& change) {
  if (!change.isSignificant()) return QStringLiteral("~");
  return change.median < 1.0 ? QStringLiteral("▼") : QStringLiteral("▲");
}

}  // namespace

QString changeText(const MetricChange& change, ChangeUnit unit, const ColumnUnit& time) {
  if (!change.isInBoth() || change.change.median == 1.0) return toQt(fuseline::changeText(change));
  return markOf(change.change) + u' ' + figureText(change, unit, time);
}

std::optional<double> changeValue(const MetricChange& change, ChangeUnit unit) {
  if (!change.isInBoth()) return std::nullopt;
  return unit == ChangeUnit::Amount ? change.next.median - change.base.median : change.change.median;
}

QString changeInterval(const MetricChange& change) {
  const RatioStats& ratio = change.change;
  if (ratio.low == ratio.high) return percentText(ratio.median);
  return QStringLiteral("%1 (95 % interval %2 to %3)")
      .arg(percentText(ratio.median), percentText(ratio.low), percentText(ratio.high));
}

double changeStrength(const MetricChange& change) {
  return hasImproved(change) ? std::min(1.0, std::abs(std::log2(change.change.median))) : 0.0;
}

}  // namespace fuseline::ui
