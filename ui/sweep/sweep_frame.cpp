// Sizes and values to pixels.
// SPDX-License-Identifier: Apache-2.0
#include "ui/sweep/sweep_frame.h"

#include "ui/theme/format.h"
#include "ui/widgets/plot_painting.h"
#include "ui/widgets/translated.h"

#include <QLineF>

#include <algorithm>

namespace fuseline::ui {

namespace {

/// Width of a legend entry: its line, its text, and the gap after it.
double entryWidth(const QString& text) {
  return kSweepLegendLinePx + kSweepGapPx + plotTextWidth(text) + 3 * kSweepGapPx;
}

bool hasUnclearDot(const SweepPlot& plot) {
  const auto isUnclear = [](const SweepSeries& series) {
    return !std::ranges::all_of(series.dots, &SweepDot::isClear);
  };
  return std::ranges::any_of(plot.series, isUnclear);
}

}  // namespace

/// Nothing where there is one line, and no more to say.
std::vector<SweepLegendEntry> SweepFrame::legend() const {
  std::vector<SweepLegendEntry> entries;
  for (const SweepSeries& series : m_plot.series) {
    const bool isNew =
        std::ranges::none_of(entries, [&](const SweepLegendEntry& entry) { return entry.look == series.look; });
    if (isNew && !series.recipe.isEmpty()) entries.push_back({.text = series.recipe, .look = series.look});
  }
  if (m_plot.quantity == SweepQuantity::Time) {
    entries.push_back({.text = translated("unfused"), .isDashed = true});
    entries.push_back({.text = translated("fused")});
  } else if (hasUnclearDot(m_plot)) {
    entries.push_back({.text = translated("hollow: not significant"), .isHollow = true});
  }
  placeInLines(entries);
  return entries;
}

/// As many in a line as there is room for.
void SweepFrame::placeInLines(std::vector<SweepLegendEntry>& entries) const {
  QPointF place(kSweepGapPx, kSweepGapPx);
  for (SweepLegendEntry& entry : entries) {
    const bool isFirst = place.x() == kSweepGapPx;
    if (!isFirst && place.x() + entryWidth(entry.text) > m_size.width() - kSweepGapPx)
      place = QPointF(kSweepGapPx, place.y() + plotTextHeight());
    entry.place = place;
    place.rx() += entryWidth(entry.text);
  }
}

double SweepFrame::legendHeight() const {
  const std::vector<SweepLegendEntry> entries = legend();
  return entries.empty() ? 0.0 : entries.back().place.y() - kSweepGapPx + plotTextHeight();
}

QRectF SweepFrame::plotArea() const {
  const double line = plotTextHeight();
  double numbers = 0.0;
  for (const double value : m_plot.y.ticks(8)) numbers = std::max(numbers, plotTextWidth(valueText(value)));
  return QRectF(QPointF(), m_size)
      .adjusted(numbers + 2 * kSweepGapPx, line + legendHeight() + 2 * kSweepGapPx, -3 * kSweepGapPx,
                -(2 * line + kSweepGapPx));
}

double SweepFrame::xOf(double size) const {
  const QRectF area = plotArea();
  return area.left() + area.width() * m_plot.x.shareOf(size);
}

double SweepFrame::yOf(double value) const {
  const QRectF area = plotArea();
  return area.bottom() - area.height() * m_plot.y.shareOf(value);
}

QPointF SweepFrame::placeOf(const SweepDot& dot) const { return {xOf(dot.size), yOf(dot.value)}; }

QString SweepFrame::valueText(double value) const {
  return m_plot.isRatio() ? QStringLiteral("%1×").arg(axisNumber(value)) : tickTime(value);
}

std::vector<double> SweepFrame::valueTicks() const {
  return m_plot.y.ticks(std::max(2, static_cast<int>(plotArea().height() / (1.8 * plotTextHeight()))));
}

std::optional<SweepPlace> SweepFrame::placeAt(QPointF position) const {
  std::optional<SweepPlace> found;
  double nearest = kSweepReachPx;
  for (std::size_t series = 0; series < m_plot.series.size(); ++series)
    for (std::size_t dot = 0; dot < m_plot.series[series].dots.size(); ++dot) {
      const double apart = QLineF(position, placeOf(m_plot.series[series].dots[dot])).length();
      if (apart > nearest) continue;
      nearest = apart;
      found = SweepPlace{series, dot};
    }
  return found;
}

}  // namespace fuseline::ui
