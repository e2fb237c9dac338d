// HistogramView: the magnitudes of a tensor, and which of them a format can hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/numerics.h"
#include "ui/theme/theme.h"

#include <QWidget>

#include <cstdint>
#include <optional>

namespace fuseline::ui {

/// Range of nonzero magnitudes of a quantized tensor.
struct HoldableRange {
  double smallest = 0.0;
  double largest = 0.0;
};
/// Range of quantized values times scales; with several blocks, the range of a single one.
HoldableRange holdableRange(ElementFormat format, const QuantizationLosses& losses);

/// One bar a binary order of magnitude, as high as the logarithm of its count, over a band for what the format holds.
class HistogramView : public QWidget {
  Q_OBJECT

 public:
  HistogramView(const Theme& theme, QWidget* parent = nullptr);
  void show(const MagnitudeHistogram& magnitudes, const std::optional<HoldableRange>& range);

  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF plotArea() const;
  int firstExponent() const;
  int lastExponent() const;
  double xOf(double exponent) const;
  double heightOf(std::int64_t count) const;
  void paintBand(QPainter& painter) const;
  void paintBars(QPainter& painter) const;
  void paintAxis(QPainter& painter) const;
  void paintCounts(QPainter& painter) const;
  QString tipAt(double x) const;

  const Theme& m_theme;
  MagnitudeHistogram m_magnitudes;
  std::optional<HoldableRange> m_range;
};

}  // namespace fuseline::ui
