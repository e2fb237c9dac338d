// Draws a histogram of magnitudes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/histogram_view.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <array>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr int kAxisHeightPx = 20;
constexpr int kTopPx = 6;
constexpr int kSidePx = 18;
constexpr int kCountsWidthPx = 40;
constexpr int kTickPitchPx = 44;
constexpr int kCountPitchPx = 16;

/// "2⁻⁹".
QString powerOfTwo(int exponent) {
  static const QString kDigits = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹");
  QString text = QStringLiteral("2");
  for (const QChar c : QString::number(exponent)) text += c == u'-' ? QChar(u'⁻') : kDigits[c.digitValue()];
  return text;
}

/// Short text of a power of ten: "100", "10k", "1M".
QString shortCount(std::int64_t count) {
  static constexpr std::array kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  for (; count >= 1000 && unit + 1 < kUnits.size(); ++unit) count /= 1000;
  return QStringLiteral("%1%2").arg(count).arg(QLatin1String(kUnits.at(unit)));
}

bool isHeld(const HoldableRange& range, int exponent) {
  return std::ldexp(1.0, exponent + 1) > range.smallest && std::ldexp(1.0, exponent) <= range.largest;
}

}  // namespace

HoldableRange holdableRange(ElementFormat format, const QuantizationLosses& losses) {
  const double smallestCode =
      visitFormat(format, [](auto codec) { return static_cast<double>(decltype(codec)::toFloat(1)); });
  return {.smallest = smallestCode * losses.scaleInvMin,
          .largest = static_cast<double>(maxFinite(format)) * losses.scaleInvMax};
}

HistogramView::HistogramView(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
  setAccessibleName(tr("Histogram of magnitudes"));
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

QSize HistogramView::minimumSizeHint() const { return {180, 90}; }

void HistogramView::show(const MagnitudeHistogram& magnitudes, const std::optional<HoldableRange>& range) {
  m_magnitudes = magnitudes;
  m_range = range;
  update();
}

QRectF HistogramView::plotArea() const {
  return QRectF(rect()).adjusted(kCountsWidthPx, kTopPx, -kSidePx, -kAxisHeightPx);
}

/// All that is in the tensor, and the whole band.
int HistogramView::firstExponent() const {
  const int first = m_magnitudes.counts.empty() ? 0 : m_magnitudes.firstExponent;
  return m_range && m_range->smallest > 0.0 ? std::min(first, std::ilogb(m_range->smallest)) : first;
}

int HistogramView::lastExponent() const {
  const int last = m_magnitudes.firstExponent + static_cast<int>(m_magnitudes.counts.size());
  return m_range && m_range->largest > 0.0 ? std::max(last, std::ilogb(m_range->largest) + 1) : last;
}

double HistogramView::xOf(double exponent) const {
  const QRectF area = plotArea();
  const double span = std::max(1, lastExponent() - firstExponent());
  return area.left() + area.width() * (exponent - firstExponent()) / span;
}

/// Height of a bar: logarithmic, with a minimum for a single element.
double HistogramView::heightOf(std::int64_t count) const {
  const auto most = static_cast<double>(*std::ranges::max_element(m_magnitudes.counts));
  return plotArea().height() * std::log2(1.0 + static_cast<double>(count)) / std::log2(1.0 + most);
}

void HistogramView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (m_magnitudes.counts.empty()) return;
  paintBand(painter);
  paintCounts(painter);
  paintBars(painter);
  paintAxis(painter);
}

void HistogramView::paintBand(QPainter& painter) const {
  if (!m_range || m_range->smallest <= 0.0) return;
  const QRectF area = plotArea();
  const double left = xOf(std::log2(m_range->smallest));
  const double right = xOf(std::log2(m_range->largest));
  QColor fill = m_theme.colors().good;
  fill.setAlpha(m_theme.isDark() ? 45 : 35);
  painter.fillRect(QRectF(left, area.top(), right - left, area.height()), fill);
  painter.setPen(QPen(m_theme.colors().good, 1, Qt::DashLine));
  painter.drawLine(QPointF(left, area.top()), QPointF(left, area.bottom()));
  painter.drawLine(QPointF(right, area.top()), QPointF(right, area.bottom()));
}

/// Values outside of the format's range are hatched, not only in another color.
void HistogramView::paintBars(QPainter& painter) const {
  const QRectF area = plotArea();
  for (std::size_t i = 0; i < m_magnitudes.counts.size(); ++i) {
    if (m_magnitudes.counts[i] == 0) continue;
    const int exponent = m_magnitudes.firstExponent + static_cast<int>(i);
    const double height = heightOf(m_magnitudes.counts[i]);
    const QRectF bar(xOf(exponent) + 0.5, area.bottom() - height, xOf(exponent + 1) - xOf(exponent) - 1, height);
    const bool isOutside = m_range && !isHeld(*m_range, exponent);
    painter.fillRect(bar,
                     isOutside ? QBrush(m_theme.colors().warning, Qt::BDiagPattern) : QBrush(m_theme.colors().accent));
  }
}

/// Lines at powers of ten, as many as have room for their numbers.
void HistogramView::paintCounts(QPainter& painter) const {
  const QRectF area = plotArea();
  painter.setFont(scaledFont(0.85));
  const std::int64_t most = *std::ranges::max_element(m_magnitudes.counts);
  double lastHeight = -kCountPitchPx;
  for (std::int64_t count = 1; count <= most; count *= 10) {
    const double height = heightOf(count);
    if (height - lastHeight < kCountPitchPx) continue;
    lastHeight = height;
    const double y = area.bottom() - height;
    painter.setPen(m_theme.colors().grid);
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(m_theme.colors().dimText);
    painter.drawText(QRectF(0, y - kCountPitchPx / 2.0, area.left() - 4, kCountPitchPx),
                     Qt::AlignRight | Qt::AlignVCenter, shortCount(count));
  }
}

void HistogramView::paintAxis(QPainter& painter) const {
  const QRectF area = plotArea();
  painter.setPen(m_theme.colors().border);
  painter.drawLine(area.bottomLeft(), area.bottomRight());
  painter.setPen(m_theme.colors().dimText);
  painter.setFont(scaledFont(0.85));
  const int span = std::max(1, lastExponent() - firstExponent());
  const int step = std::max(1, qRound(std::ceil(span * kTickPitchPx / std::max(1.0, area.width()))));
  for (int exponent = firstExponent(); exponent <= lastExponent(); exponent += step)
    painter.drawText(QRectF(xOf(exponent) - kTickPitchPx / 2.0, area.bottom() + 2, kTickPitchPx, kAxisHeightPx - 2),
                     Qt::AlignCenter, powerOfTwo(exponent));
}

QString HistogramView::tipAt(double x) const {
  const QRectF area = plotArea();
  const double span = std::max(1, lastExponent() - firstExponent());
  const int exponent = firstExponent() + static_cast<int>(std::floor((x - area.left()) / area.width() * span));
  const int index = exponent - m_magnitudes.firstExponent;
  const bool isInside = index >= 0 && index < static_cast<int>(m_magnitudes.counts.size());
  const auto count = isInside ? m_magnitudes.counts[static_cast<std::size_t>(index)] : 0;
  return tr("%1 ≤ |x| < %2: %3 elements").arg(powerOfTwo(exponent), powerOfTwo(exponent + 1)).arg(count);
}

bool HistogramView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || m_magnitudes.counts.empty()) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), tipAt(help->pos().x()), this);
  return true;
}

}  // namespace fuseline::ui
