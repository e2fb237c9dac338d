// An invitation, and legends of errors and dtypes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/canvas_legend.h"

#include "ui/canvas/metrics.h"
#include "ui/canvas/port_shape.h"
#include "ui/numerics/numerics_model.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <set>

namespace fuseline::ui {

namespace {

constexpr int kLegendMarginPx = 12;
constexpr int kLegendGapPx = 6;
constexpr int kLegendScalePx = 96;

/// Rows of the scale. In a low canvas the second one would cover nodes that fill it.
int scaleRows(const QRect& area) {
  constexpr int kLowPx = 260;
  return area.height() < kLowPx ? 1 : 2;
}

void paintInvitation(QPainter& painter, const QRect& area, const Theme& theme) {
  painter.setFont(scaledFont(1.1));
  painter.setPen(theme.colors().dimText);
  painter.drawText(area, Qt::AlignCenter,
                   translated("Drag an op here from the palette, press Tab to find one,\nor choose a template from "
                              "File > New from template."));
}

/// Nothing inside of blocks, whose ops were not measured apart.
std::optional<HeatScale> shownScale(const GraphScene& scene) {
  if (scene.canvasItems().shown().hasErrors)
    return HeatScale{translated("RMS error vs. float32"), QStringLiteral("≤ %1").arg(formatError(kCoolestError)),
                     formatError(1.0)};
  return scene.scope().isInside() ? std::nullopt : scene.measured().overlay().scale();
}

/// The shapes and colors of ports and wires, where there is more than one; above the other legend.
void paintDtypeLegend(QPainter& painter, const QRect& area, const CanvasItems& items, bool hasScale,
                      const Theme& theme) {
  const std::set<DType>& dtypes = items.shown().dtypes;
  if (dtypes.size() < 2) return;
  painter.setFont(scaledFont(0.85));
  const QFontMetrics metrics(painter.font());
  const int rows = hasScale ? scaleRows(area) + 1 : 1;
  const double middle = area.height() - kLegendMarginPx - (rows - 0.5) * metrics.height();
  double left = kLegendMarginPx;
  for (const DType dtype : dtypes) {
    const QString name = toQt(dtypeName(dtype));
    painter.setPen(QPen(theme.dtypeColor(dtypeName(dtype)), 1.8));
    painter.setBrush(theme.colors().node);
    painter.drawPath(portShape(dtype, QPointF(left + kPortRadiusPx, middle), kPortRadiusPx));
    left += 2 * kPortRadiusPx + kLegendGapPx;
    painter.setPen(theme.colors().dimText);
    painter.drawText(QPointF(left, middle + metrics.ascent() - metrics.height() / 2.0), name);
    left += metrics.horizontalAdvance(name) + 2 * kLegendGapPx;
  }
}

/// Legend of the figures on nodes, and of their colors.
void paintScale(QPainter& painter, const QRect& area, const HeatScale& scale, const Theme& theme) {
  painter.setFont(scaledFont(0.85));
  const QFontMetrics metrics(painter.font());
  const int height = metrics.height();
  const int rows = scaleRows(area);
  const int top = area.height() - kLegendMarginPx - height;
  const int titleRoom = rows > 1 ? 0 : metrics.horizontalAdvance(scale.title) + 2 * kLegendGapPx;
  const int leastLeft = kLegendMarginPx + titleRoom;
  const int scaleLeft = leastLeft + metrics.horizontalAdvance(scale.least) + kLegendGapPx;
  painter.setPen(theme.colors().dimText);
  painter.drawText(kLegendMarginPx, top - (rows - 1) * height + metrics.ascent(), scale.title);
  painter.drawText(leastLeft, top + metrics.ascent(), scale.least);
  painter.drawText(scaleLeft + kLegendScalePx + kLegendGapPx, top + metrics.ascent(), scale.most);
  for (int x = 0; x < kLegendScalePx; ++x)
    painter.fillRect(scaleLeft + x, top + 3, 1, height - 6,
                     scale.colorAt(static_cast<double>(x) / (kLegendScalePx - 1)));
}

}  // namespace

void paintLegends(QPainter& painter, const QRect& area, const GraphScene& scene, const Theme& theme) {
  const PipelineDocument& document = scene.scope().document();
  if (document.ops().empty() && document.inputs().empty()) paintInvitation(painter, area, theme);
  const std::optional<HeatScale> scale = shownScale(scene);
  if (scale) paintScale(painter, area, *scale, theme);
  paintDtypeLegend(painter, area, scene.canvasItems(), scale.has_value(), theme);
}

}  // namespace fuseline::ui
